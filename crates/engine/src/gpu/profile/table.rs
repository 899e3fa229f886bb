//! A table of dispatch times, summed by kernel.

use std::{collections::HashMap, fmt};

use super::Timing;

/// The dispatches of one kernel in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Label of the pipeline.
    pub label: String,
    /// Number of dispatches.
    pub dispatches: usize,
    /// Time of all dispatches in nanoseconds.
    pub nanoseconds: f64,
    /// Bytes they move.
    pub bytes: f64,
}

impl Row {
    /// Bytes moved per second; 0 if no time passed.
    pub fn bandwidth(&self) -> f64 {
        if self.nanoseconds > 0.0 { self.bytes / self.nanoseconds * 1e9 } else { 0.0 }
    }
}

/// The kernels of a run, longest time first.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// One row per kernel.
    pub rows: Vec<Row>,
    /// The device's best read bandwidth in bytes per second, if it was measured.
    pub best_bandwidth: Option<f64>,
}

/// Averages the dispatches of several runs of a graph, by kernel. `bytes` returns the bytes that a node moves; its dispatches share them in
/// proportion to their times, since the bytes of each dispatch are not known.
pub fn table(
    runs: &[Vec<Timing>],
    bytes: impl Fn(usize) -> u64,
    best_bandwidth: Option<f64>,
) -> Table {
    let mut rows: HashMap<&str, Row> = HashMap::new();
    for run in runs {
        let mut node_times: HashMap<usize, (f64, usize)> = HashMap::new();
        for timing in run {
            let (time, dispatches) = node_times.entry(timing.node).or_default();
            *time += timing.nanoseconds;
            *dispatches += 1;
        }
        for timing in run {
            let (time, dispatches) = node_times[&timing.node];
            let share =
                if time > 0.0 { timing.nanoseconds / time } else { 1.0 / dispatches as f64 };
            let row = rows.entry(&timing.label).or_insert_with(|| Row {
                label: timing.label.clone(),
                dispatches: 0,
                nanoseconds: 0.0,
                bytes: 0.0,
            });
            row.dispatches += 1;
            row.nanoseconds += timing.nanoseconds;
            row.bytes += bytes(timing.node) as f64 * share;
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    for row in &mut rows {
        row.dispatches /= runs.len();
        row.nanoseconds /= runs.len() as f64;
        row.bytes /= runs.len() as f64;
    }
    let longest = |a: &Row, b: &Row| b.nanoseconds.total_cmp(&a.nanoseconds);
    rows.sort_by(|a, b| longest(a, b).then_with(|| a.label.cmp(&b.label)));
    Table { rows, best_bandwidth }
}

impl Table {
    /// The sum of all kernels.
    pub fn total(&self) -> Row {
        Row {
            label: "together".into(),
            dispatches: self.rows.iter().map(|row| row.dispatches).sum(),
            nanoseconds: self.rows.iter().map(|row| row.nanoseconds).sum(),
            bytes: self.rows.iter().map(|row| row.bytes).sum(),
        }
    }

    fn line(&self, f: &mut fmt::Formatter<'_>, row: &Row, all: f64) -> fmt::Result {
        let percent = |part: f64, whole: f64| if whole > 0.0 { part / whole * 100.0 } else { 0.0 };
        let (time, bandwidth) = (row.nanoseconds / 1e3, row.bandwidth());
        let (share, megabytes) = (percent(row.nanoseconds, all), row.bytes / 1e6);
        write!(f, "{:>10} {time:>11.1} {share:>5.1}% ", row.dispatches)?;
        write!(f, "{megabytes:>9.2} {:>8.1} ", bandwidth / 1e9)?;
        match self.best_bandwidth {
            Some(best) => write!(f, "{:>6.1}%  ", percent(bandwidth, best))?,
            None => write!(f, "{:>7}  ", "–")?,
        }
        writeln!(f, "{}", row.label)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "dispatches          µs   time        MB     GB/s of best  kernel")?;
        let total = self.total();
        for row in self.rows.iter().chain([&total]) {
            self.line(f, row, total.nanoseconds)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, Timing, table};

    fn timing(node: usize, label: &str, nanoseconds: f64) -> Timing {
        Timing { node, label: label.into(), nanoseconds }
    }

    fn row(label: &str, dispatches: usize, nanoseconds: f64, bytes: f64) -> Row {
        Row { label: label.into(), dispatches, nanoseconds, bytes }
    }

    #[test]
    fn dispatches_are_added_up_by_kernel() {
        // Node 1 has two kernels, which share its bytes by time; node 2 uses one of them again.
        let run = vec![
            timing(0, "add", 1000.0),
            timing(1, "split", 3000.0),
            timing(1, "combine", 1000.0),
            timing(2, "split", 2000.0),
        ];
        let bytes = |node: usize| [10, 4000, 6000][node];
        let table = table(&[run], bytes, Some(4e9));
        let wanted = [
            row("split", 2, 5000.0, 9000.0),
            row("add", 1, 1000.0, 10.0),
            row("combine", 1, 1000.0, 1000.0),
        ];
        assert_eq!(table.rows, wanted);
        assert_eq!(table.total(), row("together", 4, 7000.0, 10_010.0));
        assert!((table.rows[0].bandwidth() - 1.8e9).abs() < 1.0);
        let text = table.to_string();
        let split = text.lines().nth(1).expect("a line for each kernel");
        assert_eq!(
            split.split_whitespace().collect::<Vec<_>>(),
            ["2", "5.0", "71.4%", "0.01", "1.8", "45.0%", "split"]
        );
        assert_eq!(text.lines().count(), 5);
    }

    #[test]
    fn several_runs_are_averaged() {
        let runs = [vec![timing(0, "add", 100.0)], vec![timing(0, "add", 300.0)]];
        assert_eq!(table(&runs, |_| 8, None).rows, [row("add", 1, 200.0, 8.0)]);
    }

    #[test]
    fn no_runs_and_no_time_give_finite_values() {
        let empty = table(&[], |_| 0, Some(1e9));
        assert!(empty.rows.is_empty());
        assert!(!empty.to_string().contains("NaN"));
        let timeless = table(&[vec![timing(0, "a", 0.0), timing(0, "b", 0.0)]], |_| 8, Some(0.0));
        assert_eq!(timeless.rows, [row("a", 1, 0.0, 4.0), row("b", 1, 0.0, 4.0)]);
        assert!(!timeless.to_string().contains("NaN") && !timeless.to_string().contains("inf"));
    }
}
