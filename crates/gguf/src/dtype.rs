//! Tensor types, with elements and bytes per block.

use std::fmt;

/// The element format of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(non_camel_case_types, reason = "these are the formats' own names")]
pub enum DType {
    /// IEEE single.
    F32,
    /// IEEE half.
    F16,
    /// 4 bits, scale.
    Q4_0,
    /// 4 bits, scale and offset.
    Q4_1,
    /// 5 bits, scale.
    Q5_0,
    /// 5 bits, scale and offset.
    Q5_1,
    /// 8 bits, scale.
    Q8_0,
    /// 8 bits, scale and sum; activations only, never in files.
    Q8_1,
    /// 2 bits in super-blocks.
    Q2_K,
    /// 3 bits in super-blocks.
    Q3_K,
    /// 4 bits in super-blocks.
    Q4_K,
    /// 5 bits in super-blocks.
    Q5_K,
    /// 6 bits in super-blocks.
    Q6_K,
    /// 8 bits in super-blocks; activations only, never in files.
    Q8_K,
    /// Code book, 2.06 bits.
    IQ2_XXS,
    /// Code book, 2.31 bits.
    IQ2_XS,
    /// Code book, 3.06 bits.
    IQ3_XXS,
    /// Code book, 1.56 bits.
    IQ1_S,
    /// 4 bits into a table of levels, scale.
    IQ4_NL,
    /// Code book, 3.44 bits.
    IQ3_S,
    /// Code book, 2.56 bits.
    IQ2_S,
    /// 4 bits into a table of levels, in super-blocks.
    IQ4_XS,
    /// Signed byte.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// IEEE double.
    F64,
    /// Code book, 1.75 bits.
    IQ1_M,
    /// The upper half of an IEEE single.
    BF16,
    /// Ternary, five digits per byte.
    TQ1_0,
    /// Ternary, four digits per byte.
    TQ2_0,
    /// 4-bit floats with a power of two as scale.
    MXFP4,
    /// 4-bit floats with 8-bit floats as scales.
    NVFP4,
}

/// Id in files, name, elements and bytes per block.
struct Facts(u32, &'static str, usize, usize);

impl DType {
    /// Every type with a known size, by id.
    pub const ALL: [Self; 33] = [
        Self::F32,
        Self::F16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q8_1,
        Self::Q2_K,
        Self::Q3_K,
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
        Self::Q8_K,
        Self::IQ2_XXS,
        Self::IQ2_XS,
        Self::IQ3_XXS,
        Self::IQ1_S,
        Self::IQ4_NL,
        Self::IQ3_S,
        Self::IQ2_S,
        Self::IQ4_XS,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F64,
        Self::IQ1_M,
        Self::BF16,
        Self::TQ1_0,
        Self::TQ2_0,
        Self::MXFP4,
        Self::NVFP4,
    ];

    const fn facts(self) -> Facts {
        match self {
            Self::F32 => Facts(0, "F32", 1, 4),
            Self::F16 => Facts(1, "F16", 1, 2),
            Self::Q4_0 => Facts(2, "Q4_0", 32, 18),
            Self::Q4_1 => Facts(3, "Q4_1", 32, 20),
            Self::Q5_0 => Facts(6, "Q5_0", 32, 22),
            Self::Q5_1 => Facts(7, "Q5_1", 32, 24),
            Self::Q8_0 => Facts(8, "Q8_0", 32, 34),
            Self::Q8_1 => Facts(9, "Q8_1", 32, 36),
            Self::Q2_K => Facts(10, "Q2_K", 256, 84),
            Self::Q3_K => Facts(11, "Q3_K", 256, 110),
            Self::Q4_K => Facts(12, "Q4_K", 256, 144),
            Self::Q5_K => Facts(13, "Q5_K", 256, 176),
            Self::Q6_K => Facts(14, "Q6_K", 256, 210),
            Self::Q8_K => Facts(15, "Q8_K", 256, 292),
            Self::IQ2_XXS => Facts(16, "IQ2_XXS", 256, 66),
            Self::IQ2_XS => Facts(17, "IQ2_XS", 256, 74),
            Self::IQ3_XXS => Facts(18, "IQ3_XXS", 256, 98),
            Self::IQ1_S => Facts(19, "IQ1_S", 256, 50),
            Self::IQ4_NL => Facts(20, "IQ4_NL", 32, 18),
            Self::IQ3_S => Facts(21, "IQ3_S", 256, 110),
            Self::IQ2_S => Facts(22, "IQ2_S", 256, 82),
            Self::IQ4_XS => Facts(23, "IQ4_XS", 256, 136),
            Self::I8 => Facts(24, "I8", 1, 1),
            Self::I16 => Facts(25, "I16", 1, 2),
            Self::I32 => Facts(26, "I32", 1, 4),
            Self::I64 => Facts(27, "I64", 1, 8),
            Self::F64 => Facts(28, "F64", 1, 8),
            Self::IQ1_M => Facts(29, "IQ1_M", 256, 56),
            Self::BF16 => Facts(30, "BF16", 1, 2),
            Self::TQ1_0 => Facts(34, "TQ1_0", 256, 54),
            Self::TQ2_0 => Facts(35, "TQ2_0", 256, 66),
            Self::MXFP4 => Facts(39, "MXFP4", 32, 17),
            Self::NVFP4 => Facts(40, "NVFP4", 64, 36),
        }
    }

    /// The type with this id in files.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.id() == id)
    }

    /// The id in files.
    pub const fn id(self) -> u32 {
        self.facts().0
    }

    /// The usual name, such as "Q4_K".
    pub const fn name(self) -> &'static str {
        self.facts().1
    }

    /// Elements in a block.
    pub const fn block_elements(self) -> usize {
        self.facts().2
    }

    /// Bytes in a block.
    pub const fn block_bytes(self) -> usize {
        self.facts().3
    }

    /// Whether [`dequantize`](crate::quant::dequantize) supports the format.
    pub const fn decodable(self) -> bool {
        use DType::*;
        !matches!(self, Q8_1 | Q8_K)
    }

    /// Whether [`quantize`](crate::quant::quantize) supports the format.
    pub const fn encodable(self) -> bool {
        use DType::*;
        let no_encoder = matches!(self, IQ1_S | IQ1_M | IQ2_XXS | IQ2_XS | IQ2_S | IQ3_XXS | IQ3_S)
            || matches!(self, TQ1_0 | TQ2_0)
            || matches!(self, I8 | I16 | I32 | I64 | F64);
        self.decodable() && !no_encoder
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of a type that files no longer use.
pub(crate) const fn retired(id: u32) -> Option<&'static str> {
    Some(match id {
        4 => "Q4_2",
        5 => "Q4_3",
        31 => "Q4_0_4_4",
        32 => "Q4_0_4_8",
        33 => "Q4_0_8_8",
        36 => "IQ4_NL_4_4",
        37 => "IQ4_NL_4_8",
        38 => "IQ4_NL_8_8",
        _ => return None,
    })
}
