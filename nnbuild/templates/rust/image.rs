//! Runs the model on one sample, for example an image, and prints its outputs, one number per line.
//!
//! It reads little-endian float32 numbers in the model's own units, all of the first input and then the next:
//!
//! ```sh
//! cargo run --release --example image < image.f32
//! ```
//!
//! Create such a file in numpy with `image.astype("<f4").tofile("image.f32")`.
use std::error::Error;
use std::io::{self, BufReader, Read};

use @PREFIX@::Context;

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = BufReader::new(io::stdin().lock());
    let mut number = || -> io::Result<f32> {
        let mut bytes = [0; 4];
        numbers.read_exact(&mut bytes)?;
        Ok(f32::from_le_bytes(bytes))
    };

    let mut memory = Box::new_uninit(); // on the heap: it may be larger than a stack
    let model = Context::new_in(&mut memory);
@EXAMPLE_IN@
    model.run()?;
@EXAMPLE_OUT@
    Ok(())
}
