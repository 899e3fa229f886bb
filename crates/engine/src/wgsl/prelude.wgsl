//#use sequence

fn grid_index(group: vec3<u32>) -> u32 {
    return group.y * 65535u + group.x;
}
