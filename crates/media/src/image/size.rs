//! The size an image is resized to: as many soft tokens as its budget allows, each of 48 × 48 pixels.

use crate::MediaError;

/// Side of a soft token in pixels.
pub const CELL: u32 = 48;

/// Maximum soft tokens of an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Budget {
    /// 70: for video frames.
    Tiny,
    /// 140.
    Small,
    /// 280: the default.
    #[default]
    Medium,
    /// 560.
    Large,
    /// 1120: for pages with small print.
    Huge,
}

impl Budget {
    /// Its number of soft tokens.
    pub fn tokens(self) -> u32 {
        match self {
            Self::Tiny => 70,
            Self::Small => 140,
            Self::Medium => 280,
            Self::Large => 560,
            Self::Huge => 1120,
        }
    }
}

impl TryFrom<u32> for Budget {
    type Error = MediaError;

    fn try_from(tokens: u32) -> Result<Self, MediaError> {
        [Self::Tiny, Self::Small, Self::Medium, Self::Large, Self::Huge]
            .into_iter()
            .find(|budget| budget.tokens() == tokens)
            .ok_or(MediaError::BadBudget(tokens))
    }
}

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Size {
    /// The size that nearly fills a budget. Both sides are rounded down to whole cells separately, so the aspect ratio changes a little.
    pub fn target(self, budget: Budget) -> Self {
        let (width, height) = (f64::from(self.width), f64::from(self.height));
        let most = budget.tokens();
        let pixels = f64::from(most) * f64::from(CELL * CELL);
        let factor = (pixels / (width * height)).sqrt();
        let cells = |side: f64| (factor * side / f64::from(CELL)).floor() as u32;
        // An image so elongated that its short side rounds to zero cells.
        let strip = |long: u32, short: u32| (long / short).min(most);
        let (wide, high) = match (cells(width), cells(height)) {
            (0, 0) => (1, 1),
            (wide, 0) if wide > 0 => (strip(self.width, self.height), 1),
            (0, _) => (1, strip(self.height, self.width)),
            both => both,
        };
        Self { width: wide * CELL, height: high * CELL }
    }

    /// Soft tokens of an image of this size.
    pub fn tokens(self) -> u32 {
        (self.width / CELL) * (self.height / CELL)
    }
}
