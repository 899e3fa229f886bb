//! Constants of kernel selection that can be measured on a device.

/// How GEMVs divide their work: constants that depend on how a device schedules work and reads memory, which no API reports. The defaults
/// suit a large device, and a small one loses little; `rullama tune` measures them for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Lanes that keep enough loads in flight to saturate memory.
    pub busy_lanes: u32,
    /// If teams are split, lanes in multiples of a busy device's: each then waits for memory less often.
    pub split_factor: u32,
    /// Divisor of a busy device's lanes if every workgroup recomputes x.
    pub x_divisor: u32,
    /// Maximum lanes of all workgroups with x in workgroup memory, in multiples of a busy device's; beyond that, they loop.
    pub loop_factor: u32,
    /// Lanes of a looping workgroup with x in workgroup memory; the compiler then uses fewer registers.
    pub loop_lanes: u32,
    /// Lanes of such a workgroup if pieces are pairs of units, which need more registers.
    pub loop_pair_lanes: u32,
    /// Maximum rows of a team if pieces are pairs of units.
    pub pair_rows: u32,
    /// Units of a row from which teams that read quantised x from global memory take `wide_rows` rows: they read more of x than of the
    /// weight otherwise.
    pub wide_units: u32,
    /// Rows of such a team.
    pub wide_rows: u32,
    /// Lanes of all such teams; teams are split until there are as many.
    pub wide_lanes: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            busy_lanes: 64 << 10,
            split_factor: 2,
            x_divisor: 4,
            loop_factor: 2,
            loop_lanes: 1024,
            loop_pair_lanes: 512,
            pair_rows: 4,
            wide_units: 448,
            wide_rows: 4,
            wide_lanes: 64 << 10,
        }
    }
}

/// A constant of [`Tuning`].
#[derive(Debug, Clone, Copy)]
pub struct TuningParameter {
    /// Its name in files.
    pub name: &'static str,
    /// The values it may have, the default among them.
    pub values: &'static [u32],
    field: fn(&mut Tuning) -> &mut u32,
}

impl TuningParameter {
    /// The value in a tuning.
    pub fn get(&self, mut tuning: Tuning) -> u32 {
        *(self.field)(&mut tuning)
    }

    /// The tuning with another value; `None` if the constant cannot have it.
    pub fn set(&self, mut tuning: Tuning, value: u32) -> Option<Tuning> {
        *(self.field)(&mut tuning) = value;
        self.values.contains(&value).then_some(tuning)
    }
}

/// All constants, those with the largest effect first.
pub static TUNING_PARAMETERS: [TuningParameter; 10] = [
    TuningParameter {
        name: "busy_lanes",
        values: &[65_536, 131_072, 32_768, 16_384, 8192, 262_144],
        field: |tuning| &mut tuning.busy_lanes,
    },
    TuningParameter {
        name: "wide_units",
        values: &[448, 256, 128, 1 << 20],
        field: |tuning| &mut tuning.wide_units,
    },
    TuningParameter {
        name: "wide_rows",
        values: &[4, 2, 1],
        field: |tuning| &mut tuning.wide_rows,
    },
    TuningParameter {
        name: "wide_lanes",
        values: &[65_536, 131_072, 32_768, 16_384],
        field: |tuning| &mut tuning.wide_lanes,
    },
    TuningParameter {
        name: "pair_rows",
        values: &[4, 2, 1],
        field: |tuning| &mut tuning.pair_rows,
    },
    TuningParameter {
        name: "loop_pair_lanes",
        values: &[512, 256, 1024],
        field: |tuning| &mut tuning.loop_pair_lanes,
    },
    TuningParameter {
        name: "loop_factor",
        values: &[2, 1, 4],
        field: |tuning| &mut tuning.loop_factor,
    },
    TuningParameter {
        name: "split_factor",
        values: &[2, 1, 4],
        field: |tuning| &mut tuning.split_factor,
    },
    TuningParameter {
        name: "x_divisor",
        values: &[4, 2, 8, 1],
        field: |tuning| &mut tuning.x_divisor,
    },
    TuningParameter {
        name: "loop_lanes",
        values: &[1024, 512, 256],
        field: |tuning| &mut tuning.loop_lanes,
    },
];

#[cfg(test)]
mod tests {
    use super::{TUNING_PARAMETERS, Tuning};

    #[test]
    fn every_constant_is_a_parameter_with_its_default_first() {
        let mut others = Tuning::default();
        for parameter in &TUNING_PARAMETERS {
            assert_eq!(
                Some(&parameter.get(Tuning::default())),
                parameter.values.first(),
                "{}",
                parameter.name
            );
            others = parameter.set(others, parameter.values[1]).expect("an allowed value");
        }
        let changed = format!("{others:?}");
        // Every field differs from its default.
        for field in format!("{:?}", Tuning::default())
            .split([' ', '{', '}', ','])
            .collect::<Vec<_>>()
            .windows(2)
        {
            if let [name, value] = field
                && name.ends_with(':')
            {
                assert!(!changed.contains(&format!("{name} {value},")), "{name} is no parameter");
            }
        }
    }

    #[test]
    fn other_values_are_refused() {
        for parameter in &TUNING_PARAMETERS {
            for value in [0, 3, u32::MAX] {
                assert_eq!(parameter.set(Tuning::default(), value), None, "{}", parameter.name);
            }
        }
    }
}
