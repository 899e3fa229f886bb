//! Kernels that count their faults: naga's module of a kernel with a check after every access and division, written back as WGSL.

use naga::{
    AddressSpace, ArraySize, AtomicFunction, BinaryOperator, Block, Expression, Function,
    GlobalVariable, Handle, Literal, Module, Range, RelationalFunction, ResourceBinding, Scalar,
    ScalarKind, Span, Statement, StorageAccess, Type, TypeInner, VectorSize, back::wgsl,
    proc::TypeResolution, valid::FunctionInfo,
};

use crate::kernels::{module, validator};

/// Counter of accesses to a buffer beyond its `arrayLength`.
pub(crate) const BUFFER: usize = 0;
/// Counter of accesses to an array, vector or matrix of fixed size beyond it, in any memory.
pub(crate) const FIXED: usize = 1;
/// Counter of integer divisions by zero.
pub(crate) const DIVISOR: usize = 2;
/// Counter of lanes: shows that kernels are counted at all.
pub(crate) const LANES: usize = 3;

/// The kernel with checks, which count in the buffer at `binding`.
///
/// # Panics
/// If naga rejects the kernel, before or after.
pub(crate) fn instrument(text: &str, constants: &[(&'static str, f64)], binding: u32) -> String {
    let text = &constant(text, constants);
    let (mut module, info) = module(text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let counters = counters(&mut module, binding);
    let types = Types { module: module.clone() };
    for (handle, function) in module.functions.iter_mut() {
        Pass { types: &types, info: &info[handle], counters, count: false }.function(function);
    }
    for (index, entry) in module.entry_points.iter_mut().enumerate() {
        let info = info.get_entry_point(index);
        Pass { types: &types, info, counters, count: true }.function(&mut entry.function);
    }
    let info = validator()
        .validate(&module)
        .unwrap_or_else(|error| panic!("instrumented: {error:?}\n{text}"));
    wgsl::write_string(&module, &info, wgsl::WriterFlags::empty())
        .unwrap_or_else(|error| panic!("instrumented: {error}\n{text}"))
}

/// The kernel with `const`s in place of its `override`s: naga's WGSL writer does not write arrays sized by overrides.
fn constant(text: &str, constants: &[(&'static str, f64)]) -> String {
    let line = |line: &str| {
        let Some(rest) = line.strip_prefix("override ") else { return line.to_owned() };
        let (name, ty) = rest.split_once(": ").expect("an override has a type");
        let given = constants.iter().find(|(known, _)| *known == name);
        match (given, ty.split(' ').next()) {
            (None, _) => format!("const {rest}"),
            (Some((_, value)), Some("u32")) => format!("const {name} = {value}u;"),
            (Some((_, value)), Some("i32")) => format!("const {name} = {value}i;"),
            (Some((_, value)), Some("bool")) => format!("const {name} = {};", *value != 0.0),
            (Some((_, value)), Some("f32")) => format!("const {name} = f32({value:?});"),
            (Some(_), other) => panic!("{name} is of type {other:?}"),
        }
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

/// Declares the counters.
fn counters(module: &mut Module, binding: u32) -> Handle<GlobalVariable> {
    let ty = |inner| Type { name: None, inner };
    let word = module.types.insert(ty(TypeInner::Atomic(Scalar::U32)), Span::UNDEFINED);
    let size = ArraySize::Constant(4.try_into().expect("four counters"));
    let array = TypeInner::Array { base: word, size, stride: 4 };
    let array = module.types.insert(ty(array), Span::UNDEFINED);
    let counters = GlobalVariable {
        name: Some("naga_counters".into()),
        space: AddressSpace::Storage { access: StorageAccess::LOAD | StorageAccess::STORE },
        binding: Some(ResourceBinding { group: 0, binding }),
        ty: array,
        init: None,
        memory_decorations: Default::default(),
    };
    module.global_variables.append(counters, Span::UNDEFINED)
}

/// A copy of the module for lookups while its functions are changed.
struct Types {
    module: Module,
}

/// The number of elements an access may reach.
enum Length {
    /// A fixed size.
    Fixed(u32),
    /// The length of the buffer behind this pointer.
    Buffer(Handle<Expression>),
}

struct Pass<'a> {
    types: &'a Types,
    info: &'a FunctionInfo,
    counters: Handle<GlobalVariable>,
    /// Whether to count lanes: the function runs once per lane.
    count: bool,
}

impl Pass<'_> {
    fn function(&self, function: &mut Function) {
        let body = std::mem::take(&mut function.body);
        let mut checked = Block::new();
        if self.count {
            self.add_one(function, &mut checked, LANES);
        }
        let rest = self.block(function, body);
        checked.extend_block(rest);
        function.body = checked;
    }

    fn block(&self, function: &mut Function, block: Block) -> Block {
        let mut checked = Block::new();
        for (statement, span) in block.span_into_iter() {
            match statement {
                Statement::Emit(range) => {
                    checked.push(Statement::Emit(range.clone()), span);
                    for expression in range {
                        self.check(function, &mut checked, expression);
                    }
                }
                Statement::Block(inner) => {
                    checked.push(Statement::Block(self.block(function, inner)), span);
                }
                Statement::If { condition, accept, reject } => {
                    let (accept, reject) =
                        (self.block(function, accept), self.block(function, reject));
                    checked.push(Statement::If { condition, accept, reject }, span);
                }
                Statement::Switch { selector, mut cases } => {
                    for case in &mut cases {
                        case.body = self.block(function, std::mem::take(&mut case.body));
                    }
                    checked.push(Statement::Switch { selector, cases }, span);
                }
                Statement::Loop { body, continuing, break_if } => {
                    let body = self.block(function, body);
                    let continuing = self.block(function, continuing);
                    checked.push(Statement::Loop { body, continuing, break_if }, span);
                }
                other => checked.push(other, span),
            }
        }
        checked
    }

    /// Appends the check of an expression, if it needs one.
    fn check(&self, function: &mut Function, block: &mut Block, handle: Handle<Expression>) {
        match function.expressions[handle] {
            Expression::Access { base, index } => {
                let index = self.word(function, block, index);
                self.check_index(function, block, base, index);
            }
            // The validator has checked constant indices of fixed sizes.
            Expression::AccessIndex { base, index } => {
                if let Some(Length::Buffer(_)) = self.length(base) {
                    let index = literal(function, index);
                    self.check_index(function, block, base, index);
                }
            }
            Expression::Binary {
                op: BinaryOperator::Divide | BinaryOperator::Modulo,
                right,
                ..
            } => {
                self.check_divisor(function, block, right);
            }
            _ => {}
        }
    }

    fn check_index(
        &self,
        function: &mut Function,
        block: &mut Block,
        base: Handle<Expression>,
        index: Handle<Expression>,
    ) {
        let (length, counter) = match self.length(base) {
            Some(Length::Fixed(length)) => (literal(function, length), FIXED),
            Some(Length::Buffer(array)) => {
                (emit(function, block, Expression::ArrayLength(array)), BUFFER)
            }
            None => return,
        };
        let op = BinaryOperator::GreaterEqual;
        let outside = Expression::Binary { op, left: index, right: length };
        let outside = emit(function, block, outside);
        self.count_if(function, block, outside, counter);
    }

    fn check_divisor(&self, function: &mut Function, block: &mut Block, right: Handle<Expression>) {
        let inner = self.info[right].ty.inner_with(&self.types.module.types);
        let (scalar, size) = match *inner {
            TypeInner::Scalar(scalar) => (scalar, None),
            TypeInner::Vector { size, scalar } => (scalar, Some(size)),
            _ => return,
        };
        let zero = match scalar {
            Scalar::U32 => Literal::U32(0),
            Scalar::I32 => Literal::I32(0),
            _ => return,
        };
        let mut zero = function.expressions.append(Expression::Literal(zero), Span::UNDEFINED);
        if let Some(size) = size {
            zero = emit(function, block, Expression::Splat { size, value: zero });
        }
        let op = BinaryOperator::Equal;
        let mut zeros = emit(function, block, Expression::Binary { op, left: right, right: zero });
        if size.is_some() {
            let any = Expression::Relational { fun: RelationalFunction::Any, argument: zeros };
            zeros = emit(function, block, any);
        }
        self.count_if(function, block, zeros, DIVISOR);
    }

    fn count_if(
        &self,
        function: &mut Function,
        block: &mut Block,
        condition: Handle<Expression>,
        counter: usize,
    ) {
        let mut accept = Block::new();
        self.add_one(function, &mut accept, counter);
        let reject = Block::new();
        block.push(Statement::If { condition, accept, reject }, Span::UNDEFINED);
    }

    fn add_one(&self, function: &mut Function, block: &mut Block, counter: usize) {
        let counters = Expression::GlobalVariable(self.counters);
        let counters = function.expressions.append(counters, Span::UNDEFINED);
        let pointer = Expression::AccessIndex { base: counters, index: counter as u32 };
        let pointer = emit(function, block, pointer);
        let value = literal(function, 1);
        let fun = AtomicFunction::Add;
        block.push(Statement::Atomic { pointer, fun, value, result: None }, Span::UNDEFINED);
    }

    /// An index as an unsigned integer: negative ones become out of bounds.
    fn word(
        &self,
        function: &mut Function,
        block: &mut Block,
        index: Handle<Expression>,
    ) -> Handle<Expression> {
        let inner = self.info[index].ty.inner_with(&self.types.module.types);
        if *inner == TypeInner::Scalar(Scalar::U32) {
            return index;
        }
        let word = Expression::As { expr: index, kind: ScalarKind::Uint, convert: Some(4) };
        emit(function, block, word)
    }

    fn length(&self, base: Handle<Expression>) -> Option<Length> {
        let types = &self.types.module.types;
        let of_size = |size: VectorSize| Some(Length::Fixed(size as u32));
        let of = |inner: &TypeInner| match *inner {
            TypeInner::Array { size: ArraySize::Constant(size), .. } => {
                Some(Length::Fixed(size.get()))
            }
            TypeInner::Array { size: ArraySize::Dynamic, .. } => Some(Length::Buffer(base)),
            TypeInner::Vector { size, .. } => of_size(size),
            TypeInner::Matrix { columns, .. } => of_size(columns),
            _ => None,
        };
        match &self.info[base].ty {
            TypeResolution::Value(TypeInner::Pointer { base, .. }) => of(&types[*base].inner),
            TypeResolution::Value(TypeInner::ValuePointer { size: Some(size), .. }) => {
                of_size(*size)
            }
            ty => match ty.inner_with(types) {
                TypeInner::Pointer { base, .. } => of(&types[*base].inner),
                inner => of(inner),
            },
        }
    }
}

fn literal(function: &mut Function, value: u32) -> Handle<Expression> {
    function.expressions.append(Expression::Literal(Literal::U32(value)), Span::UNDEFINED)
}

/// Appends an expression and emits it here.
fn emit(function: &mut Function, block: &mut Block, expression: Expression) -> Handle<Expression> {
    let handle = function.expressions.append(expression, Span::UNDEFINED);
    block.push(Statement::Emit(Range::new_from_bounds(handle, handle)), Span::UNDEFINED);
    handle
}
