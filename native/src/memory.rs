//! Memory whose amount depends on the input is requested first: a failed allocation elsewhere ends the process.

use std::collections::TryReserveError;
use std::hint::black_box;

/// This much more memory is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    pub bytes: usize,
}

/// Reserves space for more items.
///
/// # Errors
///
/// Not enough memory.
#[inline]
pub fn room<T>(items: &mut Vec<T>, more: usize) -> Result<(), NoRoom> {
    if items.capacity() - items.len() < more { grown(items, more) } else { Ok(()) }
}

#[cold]
fn grown<T>(items: &mut Vec<T>, more: usize) -> Result<(), NoRoom> {
    let bytes = (items.len() + more) * size_of::<T>();
    items.try_reserve(more).map_err(|_: TryReserveError| NoRoom { bytes })
}

/// Whether there is enough memory for a library's next step, which would end the process otherwise.
///
/// # Errors
///
/// Currently not enough memory.
pub fn expect_room(bytes: usize) -> Result<(), NoRoom> {
    let mut probe: Vec<u8> = Vec::new();
    probe.try_reserve_exact(bytes).map_err(|_| NoRoom { bytes })?;
    // Otherwise the compiler may remove an allocation that is freed unused.
    black_box(&probe);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An impossible amount is refused, and nothing else changes.
    #[test]
    fn too_much() {
        let mut items = vec![1_u64];
        let bytes = usize::MAX / 4;
        assert_eq!(room(&mut items, bytes / 8 - 1), Err(NoRoom { bytes: bytes / 8 * 8 }));
        assert_eq!(expect_room(bytes), Err(NoRoom { bytes }));
        assert_eq!(items, [1]);
        assert_eq!((room(&mut items, 100), expect_room(1 << 20)), (Ok(()), Ok(())));
    }
}
