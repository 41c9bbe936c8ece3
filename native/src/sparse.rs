//! The rows of a column of which long runs of nulls are counted, not stored.

use arrow_array::ArrayRef;

/// Fewer nulls in a row are stored in their places: to write what is between two runs by itself costs as much.
pub const MIN_RUN: usize = 32;

/// Nulls one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of stored rows before it.
    pub stored: usize,
    pub nulls: usize,
}

/// Some rows one behind the other.
#[derive(Debug)]
pub enum Stretch {
    Stored(ArrayRef),
    Nulls(usize),
}

/// What a column has in the rows of a batch.
#[derive(Debug)]
pub struct SparseArray {
    stored: ArrayRef,
    runs: Vec<Run>,
}

impl From<ArrayRef> for SparseArray {
    fn from(stored: ArrayRef) -> Self {
        Self { stored, runs: Vec::new() }
    }
}

impl SparseArray {
    /// # Arguments
    ///
    /// * `stored` - All rows that are in no run.
    /// * `runs` - In their order.
    pub fn new(stored: ArrayRef, runs: Vec<Run>) -> Self {
        Self { stored, runs }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.stored.len() + self.runs.iter().map(|run| run.nulls).sum::<usize>()
    }

    /// All rows in their order.
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
