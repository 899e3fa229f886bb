// The bookkeeping of parts, for all sizes.
import fc from "fast-check";
import { expect, test } from "vitest";
import { RullamaError } from "../../src/errors.js";
import {
  checkRead,
  extentOf,
  goDirect,
  partCount,
  partIndex,
  partLength,
  partName,
  piecesOf,
} from "../../src/storage/ranges.js";

const sizes = fc.record({ size: fc.integer({ min: 1, max: 900 }), partBytes: fc.integer({ min: 1, max: 200 }) });
/** Sizes with a stretch inside of the file. */
const reads = sizes.chain(({ size, partBytes }) =>
  fc
    .tuple(fc.nat(size), fc.nat(size))
    .map(([a, b]) => ({ size, partBytes, start: Math.min(a, b), end: Math.max(a, b) })),
);

test("parts add up to the file", () => {
  fc.assert(
    fc.property(sizes, ({ size, partBytes }) => {
      const lengths = Array.from({ length: partCount(size, partBytes) }, (_, i) => partLength(i, size, partBytes));
      expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(size);
      expect(lengths.every((length, i) => length === partBytes || (i === lengths.length - 1 && length > 0))).toBe(true);
      expect(partLength(lengths.length, size, partBytes)).toBe(0);
    }),
  );
});

test("files larger than 32 bits can count", () => {
  const size = 9 * 2 ** 30 + 1;
  expect(partCount(size, 2 ** 24)).toBe(577);
  expect(partLength(576, size, 2 ** 24)).toBe(1);
  expect(piecesOf(size - 2, 2, 2 ** 24)).toEqual([
    { part: 575, start: 2 ** 24 - 1, length: 1 },
    { part: 576, start: 0, length: 1 },
  ]);
});

test("names of parts sort like their numbers and nothing else is one", () => {
  fc.assert(
    fc.property(fc.nat(999_999), fc.nat(999_999), (a, b) => {
      expect(partIndex(partName(a))).toBe(a);
      expect(partName(a) < partName(b)).toBe(a < b);
    }),
  );
  for (const other of ["record.json", "1.part", "000001.part.crswap", "-00001.part", "0000001.part", ""]) {
    expect(partIndex(other)).toBeUndefined();
  }
});

test("a read's pieces cover it in order, each inside of its part", () => {
  fc.assert(
    fc.property(reads, ({ size, partBytes, start, end }) => {
      let at = start;
      const valid = piecesOf(start, end - start, partBytes).every((piece) => {
        const follows = piece.part * partBytes + piece.start === at;
        const inside = piece.start + piece.length <= partLength(piece.part, size, partBytes);
        at += piece.length;
        return follows && inside && piece.length > 0;
      });
      expect({ valid, at }).toEqual({ valid: true, at: end });
    }),
  );
});

test("a download that was cut anywhere goes on exactly there", () => {
  fc.assert(
    fc.property(reads, ({ size, partBytes, start: written }) => {
      const lengths = new Map<number, number>();
      for (const { part, length } of piecesOf(0, written, partBytes)) lengths.set(part, length);
      const extent = extentOf(lengths, size, partBytes);
      expect(extent.written).toBe(written);
      expect(extent.readable).toBe(written === size ? size : written - (written % partBytes));
      expect(extent.useless).toEqual([]);
    }),
  );
});

test("whatever lies in the folder, only an unbroken beginning counts", () => {
  const folders = fc.array(fc.tuple(fc.nat(12), fc.nat(250)), { maxLength: 12 });
  fc.assert(
    fc.property(sizes, folders, ({ size, partBytes }, entries) => {
      const lengths = new Map(entries);
      const { readable, written, useless } = extentOf(lengths, size, partBytes);
      expect(readable).toBeLessThanOrEqual(written);
      expect(written).toBeLessThanOrEqual(size);
      expect(readable % partBytes === 0 || readable === size).toBe(true);
      // All bytes counted lie in parts that stay.
      const counted = piecesOf(0, written, partBytes);
      expect(counted.some(({ part }) => useless.includes(part))).toBe(false);
      expect(counted.every(({ part, start, length }) => (lengths.get(part) ?? 0) >= start + length)).toBe(true);
      // After the useless ones went, the same counts and nothing is left over.
      for (const index of useless) lengths.delete(index);
      expect(extentOf(lengths, size, partBytes)).toEqual({ readable, written, useless: [] });
    }),
  );
});

test("reads outside of the file are refused", () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer(), fc.nat(10_000), (offset, length, size) => {
      const inside = offset >= 0 && length >= 0 && offset + length <= size;
      if (inside) checkRead(offset, length, size);
      else expect(() => checkRead(offset, length, size)).toThrow(RullamaError);
    }),
  );
  for (const odd of [NaN, Infinity, 0.5, -0.5]) expect(() => checkRead(odd, 1, 10)).toThrow(RullamaError);
});

test("direct reads fetch no more than their share twice, and never what is near", () => {
  const limits = { waitAhead: 1000, twiceShare: 16 };
  const wishes = fc.array(fc.record({ start: fc.nat(90_000), length: fc.integer({ min: 1, max: 9000 }) }));
  fc.assert(
    fc.property(wishes, fc.nat(100_000), (list, readable) => {
      const size = 100_000;
      let fetchedTwice = 0;
      for (const { start, length } of list) {
        const read = { end: start + length, length };
        if (!goDirect(read, { readable, size, fetchedTwice }, limits)) continue;
        expect(read.end).toBeGreaterThan(readable + limits.waitAhead);
        fetchedTwice += length;
      }
      expect(fetchedTwice).toBeLessThanOrEqual(size / limits.twiceShare);
    }),
  );
  expect(goDirect({ end: 50_000, length: 100 }, { readable: 0, size: 100_000, fetchedTwice: 0 }, limits)).toBe(true);
});
