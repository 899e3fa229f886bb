use super::{AccumulateMatmul, Form, Matmul};
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

const FORMS: [Form; 3] = [Form::Nt, Form::Nn, Form::Tn];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (m, n, k) in [(1, 1, 1), (3, 17, 5), (33, 18, 70), (1, 16, 257), (257, 3, 16)] {
        for form in FORMS {
            cases.push(matmul(form, [m, n, k], false));
            cases.push(matmul(form, [m, n, k], true));
        }
    }
    // Long sums are split over workgroups; the last case has few results and is not split.
    for form in [Form::Nn, Form::Tn, Form::Nt] {
        cases.push(matmul(form, [17, 16, 1100], false));
    }
    narrow(&mut cases);
    lora_training(&mut cases);
    for form in FORMS {
        cases.push(matmul(form, [2, 3, 4], true).gradient());
        // a = [[1, 2], [3, 4]], b = [[5, 6], [7, 8]]
        let wanted = match form {
            Form::Nt => [17.0, 23.0, 39.0, 53.0],
            Form::Nn => [19.0, 22.0, 43.0, 50.0],
            Form::Tn => [26.0, 30.0, 38.0, 44.0],
        };
        let wanted = wanted.map(|y| y * -0.5);
        let case = matmul(form, [2, 2, 2], false)
            .given("a", Data::F32(vec![1.0, 2.0, 3.0, 4.0]))
            .given("b", Data::F32(vec![5.0, 6.0, 7.0, 8.0]));
        cases.push(case.gives(&wanted));
    }
    cases
}

/// Matmuls with a narrow operand, at the edges of their kernels' tiles.
fn narrow(cases: &mut Vec<Case>) {
    for rank in [4, 12, 16, 20, 64] {
        for based in [false, true] {
            cases.push(matmul(Form::Nt, [131, rank, 260], based));
            cases.push(matmul(Form::Nn, [67, rank, 132], based));
            cases.push(matmul(Form::Nt, [37, 268, rank], based));
            cases.push(matmul(Form::Nn, [18, 140, rank], based));
            cases.push(matmul(Form::Tn, [rank, 140, 33], based));
            cases.push(matmul(Form::Tn, [76, rank, 515], based));
        }
        cases.push(accumulated(Form::Tn, [rank, 76, 70]));
        cases.push(accumulated(Form::Tn, [140, rank, 70]));
    }
    for based in [false, true] {
        // Split over workgroups of one team of rows, and of four.
        cases.push(matmul(Form::Nt, [70, 16, 1540], based));
        cases.push(matmul(Form::Nn, [70, 16, 4100], based));
        cases.push(matmul(Form::Nt, [101, 64, 4100], based));
        // Unsplit.
        cases.push(matmul(Form::Nn, [769, 16, 72], based));
    }
    // Wider strips.
    cases.push(matmul(Form::Tn, [4100, 16, 9], false));
    cases.push(matmul(Form::Tn, [32, 8196, 5], false));
    // Some columns of `a`: in vec4s, and not.
    for (form, sizes, at) in [
        (Form::Nn, [67, 16, 132], (260, 128)),
        (Form::Nn, [70, 16, 1540], (3080, 1540)),
        (Form::Tn, [76, 16, 515], (160, 80)),
        (Form::Tn, [16, 140, 33], (24, 8)),
        (Form::Nt, [18, 140, 16], (20, 4)),
        (Form::Nn, [33, 18, 70], (71, 1)),
        (Form::Tn, [17, 18, 1100], (37, 19)),
        (Form::Nt, [3, 17, 257], (260, 2)),
    ] {
        cases.push(of_columns(form, sizes, at));
    }
    for (form, sizes) in
        [(Form::Nn, [70, 16, 1540]), (Form::Nt, [18, 140, 16]), (Form::Tn, [17, 18, 1100])]
    {
        cases.push(accumulated(form, sizes));
    }
}

/// The products of a LoRA pair of rank 16 and its gradients, for weights of Gemma 4 E2B.
fn lora_training(cases: &mut Vec<Case>) {
    for tokens in [1024, 2048] {
        for (weight, from, to) in [
            ("kv 1536 to 256", 1536, 256),
            ("q 1536 to 2048", 1536, 2048),
            ("o 4096 to 1536", 4096, 1536),
            ("gate 1536 to 12288", 1536, 12_288),
            ("down 12288 to 1536", 12_288, 1536),
            ("proj 256 to 1536", 256, 1536),
        ] {
            let rank = 16;
            for (what, form, sizes, onto) in [
                ("z", Form::Nt, [tokens, rank, from], Onto::None),
                ("y", Form::Nt, [tokens, to, rank], Onto::Base),
                ("dz", Form::Nn, [tokens, rank, to], Onto::None),
                ("dB", Form::Tn, [to, rank, tokens], Onto::State),
                ("dx", Form::Nn, [tokens, from, rank], Onto::Base),
                ("dA", Form::Tn, [rank, from, tokens], Onto::State),
            ] {
                let name = format!("LoRA training {tokens} {weight} {what}");
                cases.push(named(name, form, sizes, onto).bench());
            }
        }
    }
}

/// What a matmul is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Onto {
    None,
    Base,
    State,
}

/// A matmul of the columns of `a` from `first` on, of `width`.
fn of_columns(form: Form, [m, n, k]: [usize; 3], (width, first): (usize, usize)) -> Case {
    let name = format!("{form:?} {m}x{n} over {k}, columns from {first} of {width}");
    let build = move |g: &mut Graph| {
        let (a, columns, b) = match form {
            Form::Nt => (m, k, [n, k]),
            Form::Nn => (m, k, [k, n]),
            Form::Tn => (k, m, [k, n]),
        };
        let (a, b) = (g.input("a", Type::f32([a, width])), g.input("b", Type::f32(b)));
        let op = Matmul { form, scale: -0.5, columns: Some((first, columns)) };
        vec![g.matmul(op, a, b, None)]
    };
    Case::new("matmul", name, build).tolerance(Tolerance::ARITHMETIC.terms(k))
}

fn accumulated(form: Form, [m, n, k]: [usize; 3]) -> Case {
    let name = format!("{form:?} {m}x{n} over {k} onto a state");
    named(name, form, [m, n, k], Onto::State)
}

fn matmul(form: Form, [m, n, k]: [usize; 3], based: bool) -> Case {
    let name = format!("{form:?} {m}x{n} over {k}{}", if based { " on a base" } else { "" });
    named(name, form, [m, n, k], if based { Onto::Base } else { Onto::None })
}

fn named(name: String, form: Form, [m, n, k]: [usize; 3], onto: Onto) -> Case {
    let build = move |g: &mut Graph| {
        let (a, b) = match form {
            Form::Nt => ([m, k], [n, k]),
            Form::Nn => ([m, k], [k, n]),
            Form::Tn => ([k, m], [k, n]),
        };
        let (a, b) = (g.input("a", Type::f32(a)), g.input("b", Type::f32(b)));
        let op = Matmul::new(form, -0.5);
        if onto == Onto::State {
            let state = g.state("state", Type::f32([m, n]));
            g.apply_all(AccumulateMatmul(op), &[a, b, state]);
            return vec![state];
        }
        let base = (onto == Onto::Base).then(|| g.input("base", Type::f32([m, n])));
        vec![g.matmul(op, a, b, base)]
    };
    Case::new("matmul", name, build).tolerance(Tolerance::ARITHMETIC.terms(k))
}
