//! `y = base + s · op(a) · op(b)` of f32 matrices, either of which may be transposed; the base is optional.

pub(crate) mod cases;
pub(super) mod gpu;
mod narrow;

use std::rc::Rc;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
    threads::for_pieces,
};

/// Which operand is transposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `y[m, n] = Σ_k a[m, k] · b[n, k]`
    Nt,
    /// `y[m, n] = Σ_k a[m, k] · b[k, n]`
    Nn,
    /// `y[m, n] = Σ_k a[k, m] · b[k, n]`
    Tn,
}

/// Matmul of two values. Inputs: `a`, `b`, then optionally the base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matmul {
    /// Which operand is transposed.
    pub form: Form,
    /// Factor of the product.
    pub scale: f32,
    /// First column and number of columns of `a` that take part, if not all do.
    pub columns: Option<(usize, usize)>,
}

impl Matmul {
    /// A matmul of all columns.
    pub fn new(form: Form, scale: f32) -> Self {
        Self { form, scale, columns: None }
    }
}

impl Graph {
    /// `a · bᵀ`: `[m, k]` and `[n, k]` to `[m, n]`.
    pub fn matmul_nt(&mut self, a: Value, b: Value) -> Value {
        self.apply(Matmul::new(Form::Nt, 1.0), &[a, b])
    }

    /// `a · b`: `[m, k]` and `[k, n]` to `[m, n]`.
    pub fn matmul_nn(&mut self, a: Value, b: Value) -> Value {
        self.apply(Matmul::new(Form::Nn, 1.0), &[a, b])
    }

    /// `aᵀ · b`: `[k, m]` and `[k, n]` to `[m, n]`.
    pub fn matmul_tn(&mut self, a: Value, b: Value) -> Value {
        self.apply(Matmul::new(Form::Tn, 1.0), &[a, b])
    }

    /// Any of these forms, scaled, plus `base` `[m, n]` if there is one.
    pub fn matmul(&mut self, op: Matmul, a: Value, b: Value, base: Option<Value>) -> Value {
        let inputs: Vec<Value> = [a, b].into_iter().chain(base).collect();
        self.apply(op, &inputs)
    }
}

/// Adds a matmul of its first two inputs to its third, a state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AccumulateMatmul(Matmul);

/// Sizes of a matmul, and the strides of its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strides {
    m: usize,
    n: usize,
    k: usize,
    /// Strides of `a` along `m` and `k`.
    a: [usize; 2],
    /// Its first column that takes part.
    a_first: usize,
    /// Strides of `b` along `n` and `k`.
    b: [usize; 2],
    /// Row width of the result and of its base, and the first column that is computed.
    y: [usize; 2],
}

impl Strides {
    /// Strides of operands and a result of which all columns take part.
    fn whole([m, n, k]: [usize; 3], a: [usize; 2], b: [usize; 2]) -> Self {
        Self { m, n, k, a, a_first: 0, b, y: [n, 0] }
    }

    /// Row width of `a`.
    fn a_row(&self) -> usize {
        self.a[0].max(self.a[1])
    }

    /// Whether the result has no other columns than those that are computed.
    fn is_whole(&self) -> bool {
        self.y == [self.n, 0]
    }
}

impl Matmul {
    /// The CPU reference: adds the scaled matmul of the first two inputs to `y`.
    fn add_to(&self, y: &mut [f32], call: &CpuCall<'_>) {
        let (a, b) = (call.f32(0), call.f32(1));
        let strides = self.strides(call.input(0), call.input(1));
        let (a, b) = (&*a, &*b);
        let row = |(): &mut (), row: usize, y: &mut [f32]| {
            for (column, y) in y.iter_mut().enumerate() {
                let terms = (0..strides.k).map(|k| {
                    a[strides.a_first + row * strides.a[0] + k * strides.a[1]]
                        * b[column * strides.b[0] + k * strides.b[1]]
                });
                *y += self.scale * terms.sum::<f32>();
            }
        };
        let operations = (strides.m * strides.n) as u64 * strides.k as u64;
        for_pieces(y, strides.n, operations, || (), row);
    }

    fn strides(&self, a: &Type, b: &Type) -> Strides {
        let ([ar, a_row], [br, bc]) =
            ([a.shape.rows(), a.shape.width()], [b.shape.rows(), b.shape.width()]);
        let (a_first, ac) = self.columns.unwrap_or((0, a_row));
        assert!(a_first + ac <= a_row, "matmul: {ac} columns from {a_first} on of {a}");
        let (m, k, a_steps) = match self.form {
            Form::Nt | Form::Nn => (ar, ac, [a_row, 1]),
            Form::Tn => (ac, ar, [1, a_row]),
        };
        let (n, b_k, b_steps) = match self.form {
            Form::Nt => (br, bc, [bc, 1]),
            Form::Nn | Form::Tn => (bc, br, [1, bc]),
        };
        assert_eq!(k, b_k, "matmul {:?}: {a} with {b}", self.form);
        Strides { a_first, ..Strides::whole([m, n, k], a_steps, b_steps) }
    }
}

impl Op for Matmul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let strides = self.strides(inputs[0], inputs[1]);
        let result = Type::f32([strides.m, strides.n]);
        if let Some(base) = inputs.get(2) {
            assert_eq!(**base, result, "matmul: base and result must have one type");
        }
        vec![result]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let mut y = call.out(0);
        match call.inputs() {
            0..=2 => y.fill(0.0),
            _ => y.copy_from_slice(&call.f32(2)),
        }
        self.add_to(&mut y, call);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }

    fn takes_base(&self, inputs: usize) -> bool {
        inputs == 2
    }

    fn accumulating(&self, inputs: usize) -> Option<Rc<dyn Op>> {
        (inputs == 2).then(|| Rc::new(AccumulateMatmul(*self)) as Rc<dyn Op>)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let strides = self.strides(inputs[0], inputs[1]);
        2 * strides.m as u64 * strides.n as u64 * strides.k as u64
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let Some(dy) = dy[0] else { return vec![None; node.inputs.len()] };
        assert_eq!(self.columns, None, "matmul: some columns of `a` have no gradient rule");
        let (a, b) = (node.inputs[0], node.inputs[1]);
        let mut matmul =
            |form, left, right| Some(graph.matmul(Self::new(form, self.scale), left, right, None));
        let (da, db) = match self.form {
            Form::Nt => (matmul(Form::Nn, dy, b), matmul(Form::Tn, dy, a)),
            Form::Nn => (matmul(Form::Nt, dy, b), matmul(Form::Tn, a, dy)),
            Form::Tn => (matmul(Form::Nt, b, dy), matmul(Form::Nn, a, dy)),
        };
        let base = node.inputs.get(2).map(|_| Some(dy));
        [da, db].into_iter().chain(base).collect()
    }
}

impl Op for AccumulateMatmul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let Strides { m, n, .. } = self.0.strides(inputs[0], inputs[1]);
        assert_eq!(*inputs[2], Type::f32([m, n]), "matmul: state and result must have one type");
        vec![]
    }

    fn writes(&self) -> &'static [usize] {
        &[2]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        self.0.add_to(&mut call.state(2), call);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::accumulate(&self.0, call)
    }

    fn operations(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        self.0.operations(inputs, outputs)
    }
}
