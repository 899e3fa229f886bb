//! The token at a position among the members of selected clusters: `members[clusters[position / n] · n + position mod n]`, where each cluster
//! has `n` members.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Element, Graph, Op, Type, Value},
};

static FORWARD: Kernel = Kernel { name: "member/forward", source: include_str!("forward.wgsl") };

/// A member of a cluster. Inputs: the position `[1]`, the selected clusters `[k]`, the members of all clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Members per cluster.
    pub each: usize,
}

impl Graph {
    /// The member, ids `[1]`, at a position `[1]` among those of the clusters `[k]`; `members` lists those of all clusters, `each` per cluster.
    pub fn member(
        &mut self,
        position: Value,
        clusters: Value,
        members: Value,
        each: usize,
    ) -> Value {
        self.apply(Member { each }, &[position, clusters, members])
    }
}

impl Op for Member {
    fn name(&self) -> &'static str {
        "member"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [position, _, members] = inputs else { panic!("member takes three inputs") };
        assert!(inputs.iter().all(|ty| ty.element == Element::U32), "member takes ids");
        assert_eq!(position.shape.len(), 1, "member: one position");
        assert!(
            members.shape.len().is_multiple_of(self.each),
            "member: {members}, {} each",
            self.each
        );
        vec![Type::u32([1])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (position, clusters, members) = (call.u32(0)[0] as usize, call.u32(1), call.u32(2));
        let cluster = clusters[(position / self.each).min(clusters.len() - 1)] as usize;
        let at = cluster * self.each + position % self.each;
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
