//! Parquet's hybrid of run lengths and packed bits: levels, and dictionary indices.

/// The widest numbers: eight of them are packed into one word of 128 bits.
pub const MAX_WIDTH: u32 = 16;

/// A group of packed numbers is written at once.
const GROUP: usize = 8;

/// The most groups in one packed run: their number takes one byte.
const MAX_GROUPS: usize = 63;

/// Numbers as bytes. They are complete after [`Hybrid::finish`].
#[derive(Debug, Default)]
pub struct Hybrid {
    out: Vec<u8>,
    /// Bits per number.
    width: u32,
    /// The numbers of an unwritten group.
    group: [u16; GROUP],
    grouped: usize,
    last: u16,
    /// How often the last number has repeated, within the unwritten part.
    repeats: usize,
    /// Where the number of groups in the open packed run is written.
    indicator: usize,
    groups: usize,
}

impl Hybrid {
    /// Drops all numbers.
    ///
    /// # Arguments
    ///
    /// * `width` - Bits of each following number, at most [`MAX_WIDTH`].
    pub fn begin(&mut self, width: u32) {
        self.out.clear();
        (self.width, self.grouped, self.last, self.repeats, self.groups) = (width, 0, 0, 0, 0);
    }

    /// Bytes so far, without the last few numbers.
    pub fn bytes(&self) -> usize {
        self.out.len()
    }

    pub fn memory_bytes(&self) -> usize {
        self.out.capacity()
    }

    #[inline]
    pub fn put(&mut self, number: u16) {
        if number == self.last {
            self.repeats += 1;
            if self.repeats > GROUP {
                return; // a run of it has begun
            }
        } else {
            if self.repeats >= GROUP {
                self.end_run();
            }
            (self.last, self.repeats) = (number, 1);
        }
        self.group[self.grouped] = number;
        self.grouped += 1;
        if self.grouped == GROUP {
            self.end_group();
        }
    }

    /// Appends numbers.
    pub fn put_all(&mut self, numbers: &[u16]) {
        let (groups, rest) = numbers.as_chunks::<GROUP>();
        for group in groups {
            if self.grouped > 0 {
                for number in group {
                    self.put(*number);
                }
            } else if group.iter().all(|number| *number == group[0]) {
                self.put_run(group[0], GROUP);
            } else {
                if self.repeats >= GROUP {
                    self.end_run();
                }
                self.group = *group;
                self.pack();
                (self.last, self.repeats) = (group[GROUP - 1], 0);
            }
        }
        for number in rest {
            self.put(*number);
        }
    }

    /// Appends the same number repeatedly.
    pub fn put_run(&mut self, number: u16, count: usize) {
        let mut left = count;
        while left > 0 {
            if number == self.last && self.repeats >= GROUP {
                self.repeats += left;
                return;
            }
            self.put(number);
            left -= 1;
        }
    }

    /// Appends a number repeatedly, and then another one repeatedly.
    ///
    /// If long runs of one number have few others between them, each becomes a separate run at once: that is no longer
    /// than a group with numbers of both.
    #[inline]
    pub fn put_runs(&mut self, (first, count): (u16, usize), (second, then): (u16, usize)) {
        let is_behind_run = self.groups == 0 && self.grouped == 0;
        if !is_behind_run || first == self.last || count == 0 || then < GROUP {
            self.put_run(first, count);
            self.put_run(second, then);
            return;
        }
        if self.repeats > 0 {
            self.end_run();
        }
        (self.last, self.repeats) = (first, count);
        self.end_run();
        (self.last, self.repeats) = (second, then);
    }

    /// The bytes of all numbers. The next step is [`Hybrid::begin`].
    pub fn finish(&mut self) -> &[u8] {
        if self.repeats >= GROUP || (self.groups == 0 && self.repeats > 0 && self.repeats == self.grouped) {
            self.end_run();
        } else if self.grouped > 0 {
            self.group[self.grouped..].fill(0);
            self.pack();
        }
        self.end_packed();
        &self.out
    }

    fn end_group(&mut self) {
        if self.repeats >= GROUP {
            // They are all the same, and may start a long run.
            self.grouped = 0;
            self.end_packed();
        } else {
            self.pack();
            self.repeats = 0;
        }
    }

    fn pack(&mut self) {
        if self.groups == 0 {
            self.indicator = self.out.len();
            self.out.push(0);
        }
        let numbers = self.group.iter().rev();
        if self.width <= u64::BITS / 8 {
            let packed = numbers.fold(0_u64, |packed, number| packed << self.width | u64::from(*number));
            self.out.extend_from_slice(&packed.to_le_bytes()[..self.width as usize]);
        } else {
            let packed = numbers.fold(0_u128, |packed, number| packed << self.width | u128::from(*number));
            self.out.extend_from_slice(&packed.to_le_bytes()[..self.width as usize]);
        }
        self.grouped = 0;
        self.groups += 1;
        if self.groups == MAX_GROUPS {
            self.end_packed();
        }
    }

    fn end_packed(&mut self) {
        if self.groups > 0 {
            self.out[self.indicator] = u8::try_from(self.groups << 1 | 1).expect("a packed run has 63 groups at most");
            self.groups = 0;
        }
    }

    fn end_run(&mut self) {
        self.end_packed();
        push_varint(&mut self.out, (self.repeats as u64) << 1);
        let [low, high] = self.last.to_le_bytes();
        if self.width > 0 {
            self.out.push(low);
        }
        if self.width > u8::BITS {
            self.out.push(high);
        }
        (self.repeats, self.grouped) = (0, 0);
    }
}

/// Appends a number, seven bits per byte, lowest first.
pub fn push_varint(out: &mut Vec<u8>, number: u64) {
    let mut left = number;
    while left >= 0x80 {
        out.push(left.to_le_bytes()[0] | 0x80);
        left >>= 7;
    }
    out.push(left.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(bytes: &[u8], at: &mut usize) -> usize {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[*at];
            *at += 1;
            value |= usize::from(byte & 0x7F) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    /// The reader's result; up to seven extra numbers after a packed run.
    fn decoded(bytes: &[u8], width: u32) -> Vec<u16> {
        let (mut at, mut found) = (0, Vec::new());
        while at < bytes.len() {
            let header = varint(bytes, &mut at);
            if header & 1 == 1 {
                for _ in 0..header >> 1 {
                    let mut group = [0; 16];
                    group[..width as usize].copy_from_slice(&bytes[at..at + width as usize]);
                    at += width as usize;
                    let word = u128::from_le_bytes(group);
                    found.extend((0..8).map(|number| {
                        u16::try_from(word >> (number * width) & ((1 << width) - 1)).expect("at most 16 bits")
                    }));
                }
            } else {
                let mut number = [0; 2];
                let length = width.div_ceil(8) as usize;
                number[..length].copy_from_slice(&bytes[at..at + length]);
                at += length;
                found.extend(std::iter::repeat_n(u16::from_le_bytes(number), header >> 1));
            }
        }
        found
    }

    fn check(numbers: &[u16], width: u32, way: usize) {
        let mut hybrid = Hybrid::default();
        hybrid.put(1);
        hybrid.begin(width);
        match way {
            0 => numbers.iter().for_each(|number| hybrid.put(*number)),
            1 => {
                for run in numbers.chunk_by(|left, right| left == right) {
                    hybrid.put_run(run[0], run.len());
                }
            }
            2 => {
                let runs: Vec<_> =
                    numbers.chunk_by(|left, right| left == right).map(|run| (run[0], run.len())).collect();
                for pair in runs.chunks(2) {
                    hybrid.put_runs(pair[0], pair.get(1).copied().unwrap_or((pair[0].0, 0)));
                }
            }
            _ => {
                let (first, rest) = numbers.split_at(numbers.len() * way / 10);
                hybrid.put_all(first);
                hybrid.put_all(rest);
            }
        }
        let mut found = decoded(hybrid.finish(), width);
        assert!(found.len() - numbers.len() < GROUP, "{} numbers for {}", found.len(), numbers.len());
        found.truncate(numbers.len());
        assert_eq!(found, numbers, "width {width}");
    }

    /// Runs and mixtures of all lengths around the limits, of all widths, one by one and run by run.
    #[test]
    fn runs_and_groups() {
        let mut state = 1_u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for round in 0..2_000 {
            let width = u32::try_from(random(17)).unwrap();
            let mut numbers = Vec::new();
            for _ in 0..random(40) {
                let length = [1, 2, 7, 8, 9, 15, 16, 17, 600][usize::try_from(random(9)).unwrap()];
                let number = u16::try_from(random(1 << width)).unwrap();
                if random(2) == 0 {
                    numbers.extend(std::iter::repeat_n(number, length));
                } else {
                    numbers.extend((0..length).map(|_| u16::try_from(random(1 << width)).unwrap()));
                }
            }
            check(&numbers, width, round % 10);
        }
    }

    /// A few numbers between long runs become separate runs, and those in mixtures are packed.
    #[test]
    fn runs_between_long_ones() {
        let mut hybrid = Hybrid::default();
        hybrid.begin(1);
        hybrid.put_runs((1, 0), (0, 500));
        hybrid.put_runs((1, 1), (0, 400));
        hybrid.put_runs((1, 9), (0, 300));
        hybrid.put_runs((1, 1), (0, 7));
        assert_eq!(hybrid.finish(), [0xE8, 7, 0, 2, 1, 0xA0, 6, 0, 18, 1, 0xD8, 4, 0, 3, 1]);
    }

    #[test]
    fn a_long_run_takes_three_bytes() {
        let mut hybrid = Hybrid::default();
        hybrid.begin(1);
        hybrid.put_run(1, 5_000);
        assert_eq!(hybrid.finish(), [0x90, 0x4E, 1]);
    }
}
