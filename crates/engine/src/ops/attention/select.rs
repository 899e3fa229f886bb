//! Selects the kernel form for an attention problem on a device.
//!
//! The first matching row of [`TABLE`] wins:
//!
//! | tokens | mask | condition | form |
//! |---|---|---|---|
//! | 1 | causal | raw queries, 65 to 8,192 keys, subgroups, whole vec4 pairs in each lane | split-KV, `decode/rows/single_row` |
//! | 1–8 | causal | | split-KV, `decode/rows/grouped_row` |
//! | any | bidirectional | matrix units, heads of 64 | `encoder/flash_matrix` |
//! | any | bidirectional | heads of 64 or 72 | `encoder/flash` |
//! | any | any | matrix units, heads of 64, 128, 256 or 512, 32 KiB of workgroup memory | `prefill/flash_matrix` |
//! | any | any | | `prefill/flash` |

use super::{
    decode::SplitKvTiling,
    encoder::{flash::EncoderFlash, flash_matrix},
    mask::Mask,
    prefill::FlashTile,
    problem::Problem,
};
use crate::gpu::{DeviceFacts, MatrixUnits};

/// Up to this number of tokens, the keys of a causal problem are split over workgroups: there are too few rows to saturate a device otherwise.
pub(super) const DECODE_TOKENS: usize = 8;

/// A kernel form and its tiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Split-KV attention of a few tokens.
    SplitKv(SplitKvTiling),
    /// Flash attention of an encoder, with matrix units.
    EncoderFlashMatrix(MatrixUnits),
    /// Flash attention of an encoder, without matrix units.
    EncoderFlash(EncoderFlash),
    /// Flash attention of any number of tokens under any mask.
    Flash(FlashTile),
}

/// A row of the table: returns the form if it matches the problem.
type Row = fn(&Problem, &DeviceFacts) -> Option<Form>;

/// The kernel forms by name, in order of preference.
const TABLE: [(&str, Row); 6] = [
    ("decode/single_row", |problem, facts| {
        (is_decode(problem) && problem.raw_queries)
            .then(|| SplitKvTiling::single_row(problem, facts))?
            .map(Form::SplitKv)
    }),
    ("decode/grouped_row", |problem, facts| {
        is_decode(problem).then(|| Form::SplitKv(SplitKvTiling::grouped_row(problem, facts)))
    }),
    ("encoder/flash_matrix", |problem, facts| {
        let units = flash_matrix::units(problem.width, facts)?;
        is_encoder(problem).then_some(Form::EncoderFlashMatrix(units))
    }),
    ("encoder/flash", |problem, facts| {
        let flash = EncoderFlash::new(problem.width, facts)?;
        is_encoder(problem).then_some(Form::EncoderFlash(flash))
    }),
    ("prefill/flash_matrix", |problem, facts| {
        FlashTile::matrix(problem.width, facts).map(Form::Flash)
    }),
    ("prefill/flash", |problem, facts| Some(Form::Flash(FlashTile::plain(problem.width, facts)))),
];

fn is_decode(problem: &Problem) -> bool {
    matches!(problem.mask, Mask::Causal { .. }) && problem.tokens <= DECODE_TOKENS
}

fn is_encoder(problem: &Problem) -> bool {
    problem.mask == Mask::Bidirectional
}

/// The kernel form for a problem on a device.
pub(super) fn select(problem: &Problem, facts: &DeviceFacts) -> Form {
    selected(problem, facts).1
}

/// The form and the name of its row.
fn selected(problem: &Problem, facts: &DeviceFacts) -> (&'static str, Form) {
    let mut rows = TABLE.iter().filter_map(|(name, row)| Some((*name, row(problem, facts)?)));
    rows.next().expect("the last row matches every problem")
}

/// The split-KV tiling of raw queries, of which there are at most [`DECODE_TOKENS`].
pub(super) fn split_kv_tiling(problem: &Problem, facts: &DeviceFacts) -> SplitKvTiling {
    match select(problem, facts) {
        Form::SplitKv(tiling) => tiling,
        other => unreachable!("{problem:?} takes {other:?}: infer has checked the tokens"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Form, TABLE, select, selected};
    use crate::{
        gpu::{DeviceFacts, MatrixUnits},
        ops::attention::{
            decode::{RowForm, SplitKvTiling},
            mask::Mask,
            prefill::{FlashTile, HeadTile},
            problem::Problem,
        },
        suite::real_devices,
    };

    const CAUSAL: Mask = Mask::Causal { window: None };

    fn problem(tokens: usize, heads: (usize, usize), width: usize, slots: usize) -> Problem {
        let (heads, kv_heads) = heads;
        Problem {
            tokens,
            heads,
            kv_heads,
            width,
            slots,
            mask: CAUSAL,
            raw_queries: false,
            pool: None,
        }
    }

    fn raw(problem: Problem) -> Problem {
        Problem { raw_queries: true, ..problem }
    }

    fn masked(mask: Mask, problem: Problem) -> Problem {
        Problem { mask, ..problem }
    }

    fn large() -> DeviceFacts {
        DeviceFacts {
            subgroups: Some((32, 32)),
            workgroup_bytes: 48 << 10,
            invocations: 1024,
            ..DeviceFacts::floor()
        }
    }

    fn matrix() -> DeviceFacts {
        DeviceFacts { f16: true, matrix: Some(MatrixUnits::Wgpu16), ..large() }
    }

    #[test]
    fn each_row_of_the_table_is_selected() {
        let (floor, large, matrix) = (DeviceFacts::floor(), large(), matrix());
        let small = DeviceFacts { workgroup_bytes: 16 << 10, ..matrix.clone() };
        let one = raw(problem(1, (8, 1), 256, 512));
        let eight = problem(8, (8, 1), 256, 512);
        let nine = problem(9, (8, 1), 256, 512);
        let image = |width| masked(Mask::Bidirectional, problem(2520, (12, 12), width, 2520));
        let block = masked(Mask::Block { window: 512 }, problem(3, (8, 1), 256, 512));
        let packed = masked(Mask::Packed, problem(1, (8, 1), 256, 512));
        let examples = [
            (one, &large, "decode/single_row"),
            (one, &floor, "decode/grouped_row"),
            (Problem { raw_queries: false, ..one }, &large, "decode/grouped_row"),
            (raw(eight), &large, "decode/grouped_row"),
            (raw(problem(1, (8, 1), 256, 64)), &large, "decode/grouped_row"),
            (raw(problem(1, (8, 1), 256, 8192)), &large, "decode/single_row"),
            (raw(problem(1, (8, 1), 256, 8193)), &large, "decode/grouped_row"),
            (raw(problem(1, (8, 1), 128, 512)), &large, "decode/grouped_row"),
            (eight, &matrix, "decode/grouped_row"),
            (image(64), &matrix, "encoder/flash_matrix"),
            (image(64), &large, "encoder/flash"),
            (image(72), &matrix, "encoder/flash"),
            (image(72), &floor, "encoder/flash"),
            (image(128), &matrix, "prefill/flash_matrix"),
            (image(128), &large, "prefill/flash"),
            (nine, &matrix, "prefill/flash_matrix"),
            (nine, &small, "prefill/flash"),
            (problem(9, (8, 1), 48, 512), &matrix, "prefill/flash"),
            (nine, &large, "prefill/flash"),
            // Only causal problems are split.
            (block, &matrix, "prefill/flash_matrix"),
            (packed, &large, "prefill/flash"),
        ];
        for (problem, facts, want) in &examples {
            assert_eq!(selected(problem, facts).0, *want, "{problem:?}");
        }
        let reached: HashSet<&str> = examples.iter().map(|(_, _, name)| *name).collect();
        for (name, _) in TABLE {
            assert!(reached.contains(name), "no example reaches {name}");
        }
    }

    /// A device with fewer features uses a later row, and the last row matches everything.
    #[test]
    fn every_real_device_has_a_form_for_every_problem() {
        let masks = [CAUSAL, Mask::Block { window: 512 }, Mask::Bidirectional, Mask::Packed];
        for (name, facts) in real_devices() {
            for (tokens, width) in
                [1, 2, 8, 9, 512].iter().flat_map(|t| [48, 64, 72, 128, 256, 512].map(|w| (*t, w)))
            {
                for mask in masks {
                    let problem = masked(mask, problem(tokens, (8, 2), width, 4096));
                    let form = select(&problem, &facts);
                    let split = matches!(form, Form::SplitKv(_));
                    assert_eq!(split, mask == CAUSAL && tokens <= 8, "{name}: {problem:?}");
                    let units = matches!(
                        form,
                        Form::EncoderFlashMatrix(_) | Form::Flash(FlashTile::Matrix(..))
                    );
                    assert!(facts.matrix.is_some() || !units, "{name}: {problem:?}: {form:?}");
                }
            }
        }
    }

    #[test]
    fn tilings_depend_on_tokens_heads_keys_and_memory() {
        let floor = DeviceFacts::floor();
        let large_memory = DeviceFacts { workgroup_bytes: 32 << 10, ..DeviceFacts::floor() };
        let wide = DeviceFacts { subgroups: Some((32, 32)), ..large_memory.clone() };
        let narrow = DeviceFacts { subgroups: Some((4, 4)), ..large_memory.clone() };
        let units = DeviceFacts { f16: true, matrix: Some(MatrixUnits::Wgpu16), ..wide.clone() };
        let plain = |stage| Form::Flash(FlashTile::Plain { stage });
        let matrix = |head| Form::Flash(FlashTile::Matrix(head, MatrixUnits::Wgpu16));
        let split = |rows, splits, lanes, staged| {
            let form = RowForm::Grouped;
            Form::SplitKv(SplitKvTiling { rows, splits, lanes, staged, workgroup: 256, form })
        };
        let image = |heads, width| masked(Mask::Packed, problem(2520, heads, width, 2520));
        for (problem, facts, want) in [
            // E2B: one token, sliding and global layers.
            (problem(1, (8, 1), 256, 512), &floor, split(1, 8, 16, 8)),
            (problem(1, (8, 1), 256, 512), &wide, split(1, 16, 32, 8)),
            (problem(1, (8, 1), 512, 8192), &floor, split(4, 128, 16, 4)),
            (problem(1, (8, 1), 512, 8192), &large_memory, split(4, 128, 16, 8)),
            (problem(1, (8, 1), 512, 32_768), &wide, split(8, 512, 32, 8)),
            (problem(1, (8, 1), 512, 32_768), &narrow, split(4, 128, 4, 4)),
            // 31B, sliding: 32 heads, two per kv head.
            (problem(1, (32, 16), 256, 1024), &wide, split(2, 32, 32, 2)),
            (problem(1, (9, 1), 64, 60), &floor, split(5, 1, 16, 8)),
            (problem(4, (8, 2), 64, 129), &floor, split(8, 3, 16, 8)),
            (problem(512, (8, 1), 512, 8192), &floor, plain(4)),
            (problem(512, (8, 1), 512, 8192), &large_memory, plain(8)),
            (problem(512, (8, 1), 48, 8192), &large_memory, plain(4)),
            (problem(512, (8, 1), 512, 8192), &units, matrix(HeadTile::Width512)),
            (image((12, 12), 64), &units, matrix(HeadTile::Width64)),
            (image((16, 16), 72), &units, plain(2)),
        ] {
            assert_eq!(select(&problem, facts), want, "{problem:?}");
        }
    }

    #[test]
    fn raw_queries_of_one_token_use_single_rows_up_to_8192_keys() {
        let wide = large();
        let none = DeviceFacts { subgroups: None, ..wide.clone() };
        let at = |tokens, width, slots| raw(problem(tokens, (8, 1), width, slots));
        let many_kv_heads = raw(problem(1, (16, 8), 256, 1024));
        use RowForm::{Grouped, Single};
        // Rows, KV splits, lanes per workgroup, form, whether the reader combines.
        for (problem, facts, want) in [
            (at(1, 256, 512), &wide, (1, 8, 512, Single, true)),
            (at(1, 512, 641), &wide, (1, 7, 256, Single, true)),
            (many_kv_heads, &wide, (1, 4, 512, Single, true)),
            (at(1, 512, 4096), &wide, (2, 64, 256, Single, false)),
            (at(1, 512, 32_768), &wide, (8, 512, 256, Grouped, false)),
            (at(1, 256, 64), &wide, (8, 1, 256, Grouped, false)),
            (at(2, 256, 512), &wide, (8, 16, 256, Grouped, false)),
            // Lanes that would hold parts of a pair of vec4s, and a device without subgroups.
            (at(1, 128, 512), &wide, (1, 16, 256, Grouped, false)),
            (at(1, 256, 512), &none, (1, 8, 256, Grouped, false)),
        ] {
            let tiling = super::split_kv_tiling(&problem, facts);
            let SplitKvTiling { rows, splits, workgroup, form, .. } = tiling;
            let made = (rows, splits, workgroup, form, tiling.reader_combines());
            assert_eq!(made, want, "{problem:?}");
        }
    }
}
