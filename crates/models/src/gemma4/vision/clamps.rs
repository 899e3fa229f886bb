//! Limits of what enters and leaves the products of some towers.

use std::collections::HashMap;

/// The products of a block that may have limits, in the order of packed limits.
pub const LINEARS: [&str; 7] =
    ["attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down"];
const ENDS: [&str; 4] = ["input_min", "input_max", "output_min", "output_max"];
/// Ollama's files may keep all limits in one tensor.
const PACKED: &str = "v.clamp_data";

/// Limits by the name of the product: least and most of what enters, least and most of what leaves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clamps(HashMap<String, [f32; 4]>);

impl Clamps {
    /// Names of the tensors that may hold the limits of a tower of so many blocks.
    pub fn tensors(layers: usize) -> Vec<String> {
        let products = products(layers);
        let ends = products.iter().flat_map(|name| ENDS.map(|end| format!("{name}.{end}")));
        ends.chain([PACKED.to_owned()]).collect()
    }

    /// The limits, from the numbers of those tensors that the file has.
    pub fn new(layers: usize, numbers: &HashMap<String, Vec<f32>>) -> Self {
        let mut known = HashMap::new();
        let packed = numbers.get(PACKED).map_or(&[][..], Vec::as_slice);
        let mut fours = packed.as_chunks::<4>().0.iter();
        for name in products(layers) {
            let given =
                |end: usize| numbers.get(&format!("{name}.{}", ENDS[end]))?.first().copied();
            let scattered = [
                given(0).unwrap_or(f32::NEG_INFINITY),
                given(1).unwrap_or(f32::INFINITY),
                given(2).unwrap_or(f32::NEG_INFINITY),
                given(3).unwrap_or(f32::INFINITY),
            ];
            let limits = fours.next().copied().unwrap_or(scattered);
            // Four zeros stand for no limits: anything else would make everything zero.
            let sensible = limits[0] <= limits[1] && limits[2] <= limits[3];
            if sensible && limits != [0.0; 4] && limits.iter().any(|limit| limit.is_finite()) {
                known.insert(name, limits);
            }
        }
        Self(known)
    }

    /// The limits of a product; `None` if it has none.
    pub fn get(&self, name: &str) -> Option<[f32; 4]> {
        self.0.get(name).copied()
    }
}

fn products(layers: usize) -> Vec<String> {
    (0..layers).flat_map(|layer| LINEARS.map(|name| format!("v.blk.{layer}.{name}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(pairs: &[(&str, &[f32])]) -> HashMap<String, Vec<f32>> {
        pairs.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect()
    }

    #[test]
    fn scattered_limits_may_be_missing() {
        let given = numbers(&[
            ("v.blk.0.ffn_up.input_min", &[-2.0]),
            ("v.blk.0.ffn_up.output_max", &[3.0]),
        ]);
        let clamps = Clamps::new(1, &given);
        let limits = [-2.0, f32::INFINITY, f32::NEG_INFINITY, 3.0];
        assert_eq!(clamps.get("v.blk.0.ffn_up"), Some(limits));
        assert_eq!(clamps.get("v.blk.0.ffn_down"), None);
    }

    #[test]
    fn packed_limits_come_first_and_zeros_are_none() {
        let mut packed = vec![0.0; 4];
        packed.extend([-1.0, 1.0, -5.0, 5.0]);
        packed.extend(vec![0.0; 4 * 5 + 4]);
        let given = numbers(&[(PACKED, &packed), ("v.blk.0.attn_q.input_min", &[-9.0])]);
        let clamps = Clamps::new(1, &given);
        assert_eq!(clamps.get("v.blk.0.attn_q"), None);
        assert_eq!(clamps.get("v.blk.0.attn_k"), Some([-1.0, 1.0, -5.0, 5.0]));
        assert_eq!(clamps, Clamps::new(1, &numbers(&[(PACKED, &packed)])));
    }
}
