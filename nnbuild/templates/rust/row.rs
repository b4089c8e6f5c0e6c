
    /// Takes the next row of input 0, which nothing else needs to write. True if outputs are new, after
    /// [`ROWS_PER_STEP`] rows; from [`WARM_UP`] runs on they depend on received rows alone.
    pub fn take(&mut self, row: &Row) -> Result<bool, Error> {
        // SAFETY: the pointers are to a whole context and a whole row.
        match unsafe { c::take(self.raw(), row.as_ptr().cast()) } {
            status if status < 0 => Err(Error(status)),
            status => Ok(status != 0),
        }
    }
