//! The golden files can be read on every target.

use rullama_testkit::{golden, real_vocabulary};

#[test]
fn goldens_are_readable() {
    assert!(golden("quant_blocks.safetensors").len() > 100_000);
    assert_eq!(real_vocabulary().len(), 15_776_467);
}
