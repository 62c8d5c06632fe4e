//! Writes files of DUMPI for tests, from the description of the format (version 13).

use std::path::Path;

/// An argument of a record.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    I(i32),
    H(u16),
    B(u8),
    /// A list of numbers of 32 bits.
    L(Vec<i32>),
    /// A list of numbers of 16 bits.
    T(Vec<u16>),
    /// Lists within a list.
    N(Vec<Vec<i32>>),
    /// Statuses: bytes, source, cancelled, tag.
    S(Vec<(i32, i32, bool, i32)>),
}

/// A rank's file.
#[derive(Clone, Debug)]
pub(crate) struct RankFile {
    body: Vec<u8>,
    /// Time of the next call, ns.
    pub(crate) now: u64,
    /// Duration of a call, ns.
    pub(crate) duration: u64,
    /// Calls that were not recorded, by label.
    pub(crate) not_recorded: Vec<(usize, u32)>,
}

impl RankFile {
    pub(crate) fn new() -> Self {
        let (body, not_recorded) = (b"\xff\xaa\xddDUMPI\0\0\0\0\0\0\0\0".to_vec(), Vec::new());
        let mut file = Self { body, now: 1000, duration: 100, not_recorded };
        file.call(124, &[Arg::L(vec![])]);
        file
    }

    /// Adds a call, 1000 ns after the one before.
    pub(crate) fn call(&mut self, label: u16, arguments: &[Arg]) -> &mut Self {
        let statuses = arguments.iter().any(|argument| matches!(argument, Arg::S(_)));
        self.body.extend(label.to_be_bytes());
        self.body.push(8 | u8::from(statuses));
        for time in [self.now, self.now + self.duration] {
            self.body.extend(((time / 1_000_000_000 % 65_536) as u16).to_be_bytes());
            self.body.extend(((time % 1_000_000_000) as u32).to_be_bytes());
        }
        self.now += 1000;
        for argument in arguments {
            self.argument(argument);
        }
        self
    }

    fn argument(&mut self, argument: &Arg) {
        let int = |number: i32| number.to_be_bytes();
        match argument {
            Arg::I(number) => self.body.extend(int(*number)),
            Arg::H(number) => self.body.extend(number.to_be_bytes()),
            Arg::B(number) => self.body.push(*number),
            Arg::L(list) => {
                self.body.extend(int(list.len() as i32));
                list.iter().for_each(|&number| self.body.extend(int(number)));
            }
            Arg::T(list) => {
                self.body.extend(int(list.len() as i32));
                list.iter().for_each(|number| self.body.extend(number.to_be_bytes()));
            }
            Arg::N(lists) => {
                self.body.extend(int(lists.len() as i32));
                lists.iter().for_each(|list| self.argument(&Arg::L(list.clone())));
            }
            Arg::S(statuses) => {
                self.body.extend(int(statuses.len() as i32));
                for &(bytes, source, cancelled, tag) in statuses {
                    self.body.extend([int(bytes), int(source)].concat());
                    self.body.extend([u8::from(cancelled), 0]);
                    self.body.extend(int(tag));
                }
            }
        }
    }

    pub(crate) fn finalize(&mut self) -> &mut Self {
        self.call(125, &[])
    }

    fn bytes(&self) -> Vec<u8> {
        let mut file = self.body.clone();
        file.extend(293u16.to_be_bytes());
        let header = file.len() as u64;
        file.extend([13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        file.extend(b"\0\x04host\0\0\0\0\0\0\0\0\0\0");
        let footer = file.len() as u64;
        file.extend(0xf007_fee7u64.to_be_bytes());
        file.extend([0; 4 * 291]);
        for label in 0..291 {
            let count = self.not_recorded.iter().find(|known| known.0 == label).map_or(0, |known| known.1);
            file.extend(count.to_be_bytes());
        }
        let sizes = file.len() as u64;
        let of_types = [0, 0, 1, 1, 1, 1, 4, 2, 2, 4, 4, 8, 8, 4, 8];
        file.extend((of_types.len() as i32).to_be_bytes());
        of_types.iter().for_each(|size: &i32| file.extend(size.to_be_bytes()));
        file.extend(b"\xff\xaa\xddDUMPI");
        for offset in [sizes, 0, 0, header, 8, footer, 0] {
            file.extend(offset.to_be_bytes());
        }
        file
    }

    /// Writes the file of this rank.
    pub(crate) fn write(&self, directory: &Path, rank: usize) {
        std::fs::create_dir_all(directory).unwrap();
        std::fs::write(directory.join(format!("run-{rank:04}.bin")), self.bytes()).unwrap();
    }
}
