
    /// As [`Context::run`], to the bit, but large steps are computed in parts, at most [`PARTS`], which `spread` gets
    /// to run in any order or at the same time. Those that it leaves are run when it returns.
    pub fn run_parallel(&mut self, mut spread: impl FnMut(&mut [Part<'_>])) -> Result<(), Error> {
        let mut spread: &mut dyn FnMut(&mut [Part<'_>]) = &mut spread;
        // SAFETY: the pointers are to a whole context and to `spread`, which both outlive the call.
        match unsafe { c::run_parallel(self.raw(), hand_out, (&raw mut spread).cast()) } {
            0 => Ok(()),
            status => Err(Error(status)),
        }
    }
