//! ```text
//! \x93NUMPY 1 0 <length> {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//! ```
//!
//! Fields come in any order; parsing does not recurse.

use std::{fmt, io::Read};

use crate::io::text::excerpt;

/// As in NumPy.
pub const MAX_HEADER: usize = 10_000;

const MAX_DIMENSIONS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
    Bytes(usize),
    Unicode(usize),
}

impl Dtype {
    fn parse(descr: &str) -> Option<(Self, bool)> {
        let native = cfg!(target_endian = "big");
        let (big_endian, kind) = match descr.as_bytes().first()? {
            b'<' => (false, &descr[1..]),
            b'>' => (true, &descr[1..]),
            b'=' | b'|' => (native, &descr[1..]),
            _ => (native, descr),
        };
        let dtype = match kind {
            "b1" => Self::Bool,
            "u1" => Self::U8,
            "u2" => Self::U16,
            "u4" => Self::U32,
            "u8" => Self::U64,
            "i1" => Self::I8,
            "i2" => Self::I16,
            "i4" => Self::I32,
            "i8" => Self::I64,
            "f2" => Self::F16,
            "f4" => Self::F32,
            "f8" => Self::F64,
            _ => {
                let (kind, length) = kind.split_at_checked(1)?;
                let digits = length.bytes().all(|byte| byte.is_ascii_digit());
                let length = length.parse().ok().filter(|_| digits)?;
                match kind {
                    "S" => Self::Bytes(length),
                    "U" => Self::Unicode(length),
                    _ => return None,
                }
            }
        };
        Some((dtype, big_endian))
    }

    /// `None` on overflow.
    pub fn size(self) -> Option<usize> {
        Some(match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::Bytes(length) => length,
            Self::Unicode(length) => length.checked_mul(4)?,
        })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::Bytes(length) => return write!(f, "S{length}"),
            Self::Unicode(length) => return write!(f, "U{length}"),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub dtype: Dtype,
    pub big_endian: bool,
    /// False below two dimensions.
    pub fortran: bool,
    pub shape: Vec<usize>,
    pub len: usize,
    /// Element offset.
    pub start: usize,
}

impl Header {
    /// Elements must fill the rest of `size`.
    pub fn read(reader: &mut impl Read, size: u64) -> Result<Self, String> {
        let mut magic = [0; 8];
        read_exact(reader, &mut magic)?;
        if &magic[..6] != b"\x93NUMPY" {
            return Err("not an npy array".to_string());
        }
        let [.., major, minor] = magic;
        let width = match (major, minor) {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            _ => {
                return Err(format!(
                    "npy format version {major}.{minor}; 1.0, 2.0 and 3.0 are read"
                ));
            }
        };
        let mut word = [0; 4];
        read_exact(reader, &mut word[..width])?;
        let length = u32::from_le_bytes(word) as usize;
        if length > MAX_HEADER {
            return Err(format!(
                "the npy header declares {length} bytes, at most {MAX_HEADER} are read"
            ));
        }
        let mut text = vec![0; length];
        read_exact(reader, &mut text)?;

        let Fields { descr, fortran, shape } = Fields::parse(&text)?;
        let (dtype, big_endian) = Dtype::parse(&descr).ok_or_else(|| unknown(&descr))?;
        let start = 8 + width + length;
        let len = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let bytes = len.and_then(|n| n.checked_mul(dtype.size()?));
        let there = size.saturating_sub(start as u64);
        match (len, bytes) {
            (Some(len), Some(bytes)) if bytes as u64 == there => Ok(Self {
                dtype,
                big_endian,
                fortran: fortran && shape.len() > 1,
                shape,
                len,
                start,
            }),
            _ => Err(format!(
                "the npy header declares {} of {dtype}, but {there} bytes of values follow",
                excerpt(&format!("shape {shape:?}"))
            )),
        }
    }
}

fn unknown(descr: &str) -> String {
    let hint = match descr.trim_start_matches(['<', '>', '=', '|']).as_bytes() {
        [b'c', ..] => "numpy's .real takes the real part",
        [b'O', ..] => "it holds pickled objects, which are not read",
        _ => "numpy's .astype(\"float64\") converts numbers",
    };
    let descr = excerpt(descr);
    format!("dtype {descr} is not bool, int, uint, float16, float32 or float64; {hint}")
}

pub(super) fn read_exact(reader: &mut impl Read, buffer: &mut [u8]) -> Result<(), String> {
    let read = reader.read_exact(buffer);
    read.map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "truncated".to_string(),
        _ => excerpt(&error.to_string()),
    })
}

struct Fields {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

impl Fields {
    fn parse(text: &[u8]) -> Result<Self, String> {
        let mut rest = Literal(text);
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        if !rest.eat(b"{") {
            return Err("the npy header is not a dictionary".to_string());
        }
        while !rest.eat(b"}") {
            let key = rest.string().ok_or("the npy header has a bad key")?;
            if !rest.eat(b":") {
                return Err("the npy header has a key without a value".to_string());
            }
            let again = match key.as_str() {
                "descr" => descr.replace(rest.descr()?).is_some(),
                "fortran_order" => fortran.replace(rest.boolean()?).is_some(),
                "shape" => shape.replace(rest.shape()?).is_some(),
                _ => return Err(format!("the npy header has a key {}", excerpt(&key))),
            };
            if again {
                return Err(format!("the npy header has {key} twice"));
            }
            if !rest.eat(b",") && !rest.starts(b"}") {
                return Err(format!("the npy header is broken after {key}"));
            }
        }
        if !rest.is_empty() {
            return Err("the npy header goes on after its dictionary".to_string());
        }
        Ok(Self {
            descr: descr.ok_or("the npy header has no descr")?,
            fortran: fortran.ok_or("the npy header has no fortran_order")?,
            shape: shape.ok_or("the npy header has no shape")?,
        })
    }
}

/// Methods skip white space first.
struct Literal<'a>(&'a [u8]);

impl Literal<'_> {
    fn starts(&mut self, token: &[u8]) -> bool {
        self.0 = self.0.trim_ascii_start();
        self.0.starts_with(token)
    }

    fn is_empty(&mut self) -> bool {
        self.0.trim_ascii_start().is_empty()
    }

    fn eat(&mut self, token: &[u8]) -> bool {
        let found = self.starts(token);
        if found {
            self.0 = &self.0[token.len()..];
        }
        found
    }

    fn string(&mut self) -> Option<String> {
        let quote = [b'\'', b'"'].into_iter().find(|&quote| self.eat(&[quote]))?;
        let end = self.0.iter().position(|&byte| byte == quote)?;
        let text = str::from_utf8(&self.0[..end]).ok()?;
        self.0 = &self.0[end + 1..];
        (!text.contains('\\')).then(|| text.to_string())
    }

    fn descr(&mut self) -> Result<String, String> {
        if self.starts(b"[") {
            return Err(
                "structured arrays are not read; save one field, such as a[\"x\"]".to_string()
            );
        }
        let descr = self.string();
        descr.ok_or_else(|| "the npy header's descr is not a string".to_string())
    }

    fn boolean(&mut self) -> Result<bool, String> {
        match (self.eat(b"True"), self.eat(b"False")) {
            (true, false) => Ok(true),
            (false, true) => Ok(false),
            _ => Err("the npy header's fortran_order is not a boolean".to_string()),
        }
    }

    /// Also Python 2's `(2L, 3L)`.
    fn shape(&mut self) -> Result<Vec<usize>, String> {
        let broken = || "the npy header's shape is not a tuple of sizes".to_string();
        if !self.eat(b"(") {
            return Err(broken());
        }
        let (mut shape, mut comma) = (Vec::new(), true);
        while !self.eat(b")") {
            if !comma || shape.len() == MAX_DIMENSIONS {
                return Err(broken());
            }
            shape.push(self.size().ok_or_else(broken)?);
            comma = self.eat(b",");
        }
        match shape.len() == 1 && !comma {
            true => Err(broken()),
            false => Ok(shape),
        }
    }

    fn size(&mut self) -> Option<usize> {
        self.0 = self.0.trim_ascii_start();
        let end = self.0.iter().position(|byte| !byte.is_ascii_digit())?;
        let size = str::from_utf8(&self.0[..end]).ok()?.parse().ok()?;
        self.0 = &self.0[end..];
        self.eat(b"L");
        Some(size)
    }
}
