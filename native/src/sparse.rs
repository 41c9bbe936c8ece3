//! The rows of a column in which long runs of nulls are counted, not stored.

use arrow_array::ArrayRef;

use crate::text::TextRows;

/// Shorter runs of nulls are stored in place: writing the values between two runs separately costs as much.
pub const MIN_RUN: usize = 32;

/// Consecutive nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of stored rows before it.
    pub stored: usize,
    pub nulls: usize,
}

/// Adds nulls after this many stored rows.
pub fn add_run(runs: &mut Vec<Run>, stored: usize, nulls: usize) {
    match runs.last_mut() {
        // Everything after it was dropped.
        Some(run) if run.stored == stored => run.nulls += nulls,
        _ => runs.push(Run { stored, nulls }),
    }
}

/// Drops the runs' part of all rows from this one on.
///
/// # Arguments
///
/// * `run_rows` - The rows in all runs.
///
/// # Returns
///
/// The number of dropped nulls.
pub fn forget_runs(runs: &mut Vec<Run>, run_rows: usize, rows: usize) -> usize {
    let mut left = run_rows;
    while let Some(run) = runs.last_mut() {
        let start = run.stored + left - run.nulls;
        let kept = rows.saturating_sub(start).min(run.nulls);
        left -= run.nulls - kept;
        run.nulls = kept;
        if kept > 0 {
            break;
        }
        runs.pop();
    }
    run_rows - left
}

/// Some consecutive rows.
#[derive(Debug)]
pub enum Stretch {
    Stored(ArrayRef),
    Nulls(usize),
}

/// Columns with the same text in many rows: how many consecutive rows have each text.
pub type TextRuns = Vec<(Box<[u8]>, usize)>;

/// A column's content in the rows of a batch.
#[derive(Debug)]
pub enum ColumnRows {
    Texts(TextRows),
    Runs(TextRuns),
    Array(SparseArray),
}

impl ColumnRows {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Runs(runs) => runs.iter().map(|(_, rows)| rows).sum(),
            Self::Array(array) => array.len(),
        }
    }
}

/// Values of a type, or maps, in the rows of a batch.
#[derive(Debug)]
pub struct SparseArray {
    stored: ArrayRef,
    runs: Vec<Run>,
}

impl From<ArrayRef> for ColumnRows {
    fn from(stored: ArrayRef) -> Self {
        Self::Array(SparseArray { stored, runs: Vec::new() })
    }
}

impl SparseArray {
    /// # Arguments
    ///
    /// * `stored` - All rows outside runs.
    /// * `runs` - In order.
    pub fn new(stored: ArrayRef, runs: Vec<Run>) -> Self {
        Self { stored, runs }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.stored.len() + self.runs.iter().map(|run| run.nulls).sum::<usize>()
    }

    /// All rows in order.
    pub fn stretches(&self) -> impl Iterator<Item = Stretch> {
        let ends = self.runs.iter().map(|run| (run.stored, run.nulls)).chain([(self.stored.len(), 0)]);
        let mut at = 0;
        ends.flat_map(move |(end, nulls)| {
            let stored = (end > at).then(|| Stretch::Stored(self.stored.slice(at, end - at)));
            at = end;
            stored.into_iter().chain((nulls > 0).then_some(Stretch::Nulls(nulls)))
        })
    }
}
