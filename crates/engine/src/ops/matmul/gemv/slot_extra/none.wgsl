// The epilogue has no input.
