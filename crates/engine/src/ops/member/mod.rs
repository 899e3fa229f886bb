//! Which token a place among the members of chosen clusters stands for: `members[clusters[place / n] · n + place mod n]`, where clusters
//! have `n` members each.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Element, Graph, Op, Type, Value},
};

static FORWARD: Kernel = Kernel { name: "member/forward", source: include_str!("forward.wgsl") };

/// A member of a cluster. Inputs: the place `[1]`, the chosen clusters `[k]`, the members of all clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Members of each cluster.
    pub each: usize,
}

impl Graph {
    /// The member, ids `[1]`, at a place `[1]` among those of the clusters `[k]`; `members` lists those of all clusters, `each` at a
    /// time.
    pub fn member(&mut self, place: Value, clusters: Value, members: Value, each: usize) -> Value {
        self.apply(Member { each }, &[place, clusters, members])
    }
}

impl Op for Member {
    fn name(&self) -> &'static str {
        "member"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [place, _, members] = inputs else { panic!("member takes three inputs") };
        assert!(inputs.iter().all(|ty| ty.element == Element::U32), "member takes ids");
        assert_eq!(place.shape.len(), 1, "member: one place");
        assert!(
            members.shape.len().is_multiple_of(self.each),
            "member: {members}, {} each",
            self.each
        );
        vec![Type::u32([1])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (place, clusters, members) = (call.u32(0)[0] as usize, call.u32(1), call.u32(2));
        let cluster = clusters[(place / self.each).min(clusters.len() - 1)] as usize;
        let at = cluster * self.each + place % self.each;
        call.out_u32(0)[0] = members[at.min(members.len() - 1)];
    }

    fn gpu(&self, _: &GpuCall<'_>) -> Vec<Dispatch> {
        vec![
            Dispatch::new(&FORWARD)
                .params(&Params { each: self.each as u32 })
                .read(BufferRef::Input(0))
                .read(BufferRef::Input(1))
                .read(BufferRef::Input(2))
                .write(BufferRef::Output(0)),
        ]
    }

    fn bytes_read(&self, inputs: &[&Type], _: &crate::graph::Step) -> u64 {
        inputs[0].bytes() + inputs[1].bytes() + 4
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    each: u32,
}
