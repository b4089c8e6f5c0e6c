/// The maximum number of parts of a step.
pub const PARTS: usize = @PARTS@;

type Function = unsafe extern "C" fn(job: *mut c_void, index: i32);

/// A part of a step, with its own outputs and scratch memory.
pub struct Part<'a> {
    function: Function,
    job: *mut c_void,
    index: i32,
    done: bool,
    step: PhantomData<&'a mut ()>,
}

// SAFETY: parts of one step write to different places, and each is run once.
unsafe impl Send for Part<'_> {}

impl Part<'_> {
    /// Computes it; a second time does nothing.
    pub fn run(&mut self) {
        if !self.done {
            self.done = true;
            // SAFETY: C gave the function together with the job, and the number is one of those it asked for.
            unsafe { (self.function)(self.job, self.index) }
        }
    }
}

/// Called by C for every step in parts: `pool` is the caller's `spread`.
unsafe extern "C" fn hand_out(pool: *mut c_void, function: Function, job: *mut c_void, count: i32) {
    // SAFETY: it is what `run_parallel` gave.
    let spread = unsafe { &mut *pool.cast::<&mut dyn FnMut(&mut [Part<'_>])>() };
    let part = |index| Part { function, job, index: index as i32, done: false, step: PhantomData };
    let mut parts: [Part<'_>; PARTS] = core::array::from_fn(part);
    let parts = &mut parts[..count as usize];
    spread(parts);
    parts.iter_mut().for_each(Part::run);
}
