//! Encodes rows in a separate thread if a processor is free, so that one output file can use two processors.
//!
//! At most one batch is in progress: the next one, and the end of the file, wait for it. Callers always see the output
//! as of then, wherever the batch is encoded, so it depends only on the rows and never on concurrent work.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use parquet::errors::{ParquetError, Result};

use crate::output::Output;
use crate::parts::Parts;
use crate::sparse::ColumnRows;

/// Outputs in this process.
static OUTPUTS: AtomicUsize = AtomicUsize::new(0);

/// An [`Output`] that another thread may write to.
pub struct BackgroundOutput {
    state: State,
    /// Threads that may encode at once: another one is started while this process has fewer outputs.
    threads: usize,
    /// Completed before the last batch, and not taken yet.
    completed: Parts,
    /// Whether these are a file's last ones.
    has_ended: bool,
    size_bytes: usize,
    in_progress_bytes: usize,
    /// The rows of the last written batch.
    written: Vec<ColumnRows>,
}

enum State {
    Idle(Box<Output>),
    UnderWay(JoinHandle<Written>),
    /// The last batch, encoded in the caller's own thread.
    Ended(Written),
    /// An earlier call failed.
    Broken,
}

/// A batch and its output.
type Batch = (Box<Output>, Vec<ColumnRows>);
type Written = (Box<Output>, Vec<ColumnRows>, Result<()>);

impl BackgroundOutput {
    /// # Arguments
    ///
    /// * `threads` - From this number of outputs in the process on, nothing runs in the background.
    pub fn new(output: Output, threads: usize) -> Self {
        OUTPUTS.fetch_add(1, Ordering::Relaxed);
        let state = State::Idle(Box::new(output));
        Self {
            state,
            threads,
            completed: Parts::default(),
            has_ended: false,
            size_bytes: 0,
            in_progress_bytes: 0,
            written: Vec::new(),
        }
    }

    /// The length of the file so far, without the last batch.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// The bytes of the open row group, without the last batch.
    pub fn in_progress_bytes(&self) -> usize {
        self.in_progress_bytes
    }

    /// Writes a batch, or starts to, once the previous one is written.
    ///
    /// # Errors
    ///
    /// The previous one could not be encoded; or the bytes of a finished file were not taken yet.
    ///
    /// # Panics
    ///
    /// If the thread that encoded the previous one panicked.
    pub fn write(&mut self, rows: Vec<ColumnRows>) -> Result<()> {
        let batch = (self.idle()?, rows);
        if self.has_ended && !self.completed.is_empty() {
            let fault = "rows of the next file; expected the bytes of the one that has ended to be taken before";
            return Err(ParquetError::General(fault.to_owned()));
        }
        self.has_ended = false;
        self.state = if OUTPUTS.load(Ordering::Relaxed) < self.threads {
            in_background(batch)
        } else {
            State::Ended(written(batch))
        };
        Ok(())
    }

    /// Waits until the last batch is written.
    ///
    /// # Returns
    ///
    /// Its rows, useful only for their memory; none if they were already returned.
    ///
    /// # Errors
    ///
    /// It could not be encoded.
    ///
    /// # Panics
    ///
    /// As [`Self::write`].
    pub fn written(&mut self) -> Result<Vec<ColumnRows>> {
        self.state = State::Idle(self.idle()?);
        Ok(std::mem::take(&mut self.written))
    }

    /// The next completed bytes, without those of the last batch. None if there are no more.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.completed.take()
    }

    /// Ends the file and completes its bytes, which must be taken before the next row: that starts a new file.
    ///
    /// # Errors
    ///
    /// As for [`Self::write`]; or the file cannot be assembled.
    ///
    /// # Panics
    ///
    /// As [`Self::write`].
    pub fn finish(&mut self) -> Result<()> {
        let mut output = self.idle()?;
        output.finish(&mut self.completed)?;
        self.has_ended = true;
        self.state = State::Idle(self.taken_back((output, Vec::new(), Ok(())))?);
        Ok(())
    }

    /// The output, once the last batch is written.
    fn idle(&mut self) -> Result<Box<Output>> {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Idle(output) => Ok(output),
            State::UnderWay(thread) => self.taken_back(thread.join().unwrap_or_else(|panic| resume_unwind(panic))),
            State::Ended(written) => self.taken_back(written),
            State::Broken => Err(ParquetError::General("an earlier batch failed; expected no more batches".to_owned())),
        }
    }

    fn taken_back(&mut self, (mut output, rows, written): Written) -> Result<Box<Output>> {
        written?;
        self.written = rows;
        output.move_to(&mut self.completed);
        (self.size_bytes, self.in_progress_bytes) = (output.size_bytes(), output.in_progress_bytes());
        Ok(output)
    }
}

impl Drop for BackgroundOutput {
    fn drop(&mut self) {
        if let State::UnderWay(thread) = std::mem::replace(&mut self.state, State::Broken) {
            // Its result is not needed, nor its panic; but it must not outlive its output.
            let _ = thread.join();
        }
        OUTPUTS.fetch_sub(1, Ordering::Relaxed);
    }
}

fn in_background(batch: Batch) -> State {
    let batch = Arc::new(Mutex::new(Some(batch)));
    let of_thread = Arc::clone(&batch);
    match Builder::new().name("encode".to_owned()).spawn(move || written(taken(&of_thread))) {
        Ok(thread) => State::UnderWay(thread),
        Err(_) => State::Ended(written(taken(&batch))), // there is no further thread to be had
    }
}

fn taken(batch: &Mutex<Option<Batch>>) -> Batch {
    batch.lock().unwrap_or_else(PoisonError::into_inner).take().expect("a batch is written once")
}

fn written((mut output, rows): Batch) -> Written {
    let written = output.write(&rows);
    (output, rows, written)
}
