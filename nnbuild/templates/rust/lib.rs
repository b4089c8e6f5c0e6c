//! @TITLE@, printed by nnbuild @VERSION@: a safe wrapper around the C in `csrc/`.
//!
//! ```no_run
//! let mut memory = Box::new_uninit();
//! let model = @PREFIX@::Context::new_in(&mut memory);
//! model.input0().fill(Default::default());
//! model.run().unwrap();
//! println!("{:?}", model.output0());
//! ```
#![no_std]
#![warn(missing_docs)]

use core::ffi::c_void;
use core::fmt;
@PHANTOM@use core::mem::MaybeUninit;

/// Identifies the computation: equal for equal networks and weights.
pub const HASH: &str = "@HASH@";
/// Bytes of a run's working memory.
pub const ARENA_BYTES: usize = @ARENA@;
/// Bytes of state carried between runs.
pub const STATE_BYTES: usize = @STATE@;
/// The parts of a run.
pub const STEPS: u32 = @STEPS@;

@TENSORS@
@ROW_TYPE@mod c {
    use core::ffi::{c_int, c_uint, c_void};
@IMPORT@
    extern "C" {
        #[link_name = "@INIT@"]
        pub fn init(context: *mut c_void);
        #[link_name = "@PREFIX@_input"]
        pub fn input(context: *mut c_void, index: c_uint) -> *mut c_void;
        #[link_name = "@PREFIX@_run"]
        pub fn run(context: *mut c_void) -> c_int;
        #[link_name = "@STEP_FUNCTION@"]
        pub fn step(context: *mut c_void, step: c_uint) -> c_int;
@ROW_EXTERN@@EXTERN@        #[link_name = "@PREFIX@_output"]
        pub fn output(context: *const c_void, index: c_uint) -> *const c_void;
    }
}

@PART@/// The model did not run; the number is the C code's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub i32);

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the model @PREFIX@ did not run: {}", self.0)
    }
}

impl core::error::Error for Error {}

/// A run's working memory and the state carried between runs. There may be several.
#[repr(C, align(@ALIGNMENT@))]
pub struct Context {
    bytes: [u8; @CONTEXT_BYTES@],
}

impl Context {
    /// Starts a sequence in your own memory: on the heap, or in a static without a heap.
    pub fn new_in(memory: &mut MaybeUninit<Context>) -> &mut Context {
        // SAFETY: zeros are a valid context, and the pointer is to the whole of it.
        unsafe {
            memory.as_mut_ptr().write_bytes(0, 1);
            let context = memory.assume_init_mut();
            c::init(context.raw());
            context
        }
    }

    /// Starts a sequence in memory on the stack; consider its size, see [`ARENA_BYTES`].
    pub fn new() -> Context {
        let mut context = Context { bytes: [0; @CONTEXT_BYTES@] };
        context.reset();
        context
    }

    /// Starts a new sequence: clears the state.
    pub fn reset(&mut self) {
        // SAFETY: the pointer is to a whole context.
        unsafe { c::init(self.raw()) }
    }

    /// Computes the outputs from the inputs.
    pub fn run(&mut self) -> Result<(), Error> {
        // SAFETY: the pointer is to a whole context, and C keeps to it.
        match unsafe { c::run(self.raw()) } {
            0 => Ok(()),
            status => Err(Error(status)),
        }
    }

    /// One of the [`STEPS`] parts of a run, which must run in order.
    pub fn step(&mut self, step: u32) -> Result<(), Error> {
        // SAFETY: the pointer is to a whole context, and C refuses a step that there is not.
        match unsafe { c::step(self.raw(), step) } {
            0 => Ok(()),
            status => Err(Error(status)),
        }
    }
@ROW@@PARALLEL@
@ACCESS@
    fn raw(&mut self) -> *mut c_void {
        self.bytes.as_mut_ptr().cast()
    }
}

impl Default for Context {
    fn default() -> Context {
        Context::new()
    }
}

/// Rounds halves away from zero and saturates, like the reference on the host.
#[allow(dead_code)] // unused in a float model
fn quantize(value: f32, scale: f32, zero_point: i32, low: i32, high: i32) -> i32 {
    let scaled = value / scale;
    let whole = scaled as i32; // towards zero, and within its limits
    let rest = scaled - whole as f32;
    let rounded = if rest >= 0.5 {
        whole.saturating_add(1)
    } else if rest <= -0.5 {
        whole.saturating_sub(1)
    } else {
        whole
    };
    rounded.saturating_add(zero_point).clamp(low, high)
}
