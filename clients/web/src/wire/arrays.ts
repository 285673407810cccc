// Array messages as typed arrays: little endian on the wire and on every machine with a browser.
import { type Array as WireArray, DataType } from "../../generated/tribo/v1/common_pb";

export type Numbers = Float64Array | Float32Array | Int32Array | Uint8Array;

/** The bytes from an aligned place on: a view where they are aligned, else a copy. */
function aligned(data: Uint8Array, size: number): { buffer: ArrayBufferLike; at: number } {
  if (data.byteOffset % size === 0) return { buffer: data.buffer, at: data.byteOffset };
  return { buffer: data.slice().buffer, at: 0 };
}

/** The numbers of an array; empty where it is absent. */
export function numbers(array: WireArray | undefined): Numbers {
  if (!array) return new Float32Array(0);
  const { data, dtype } = array;
  switch (dtype) {
    case DataType.FLOAT32: {
      const { buffer, at } = aligned(data, 4);
      return new Float32Array(buffer, at, data.byteLength >> 2);
    }
    case DataType.INT32: {
      const { buffer, at } = aligned(data, 4);
      return new Int32Array(buffer, at, data.byteLength >> 2);
    }
    case DataType.UINT8:
      return data;
    case DataType.INT64: {
      const { buffer, at } = aligned(data, 8);
      return Float64Array.from(new BigInt64Array(buffer, at, data.byteLength >> 3), Number);
    }
    default: {
      const { buffer, at } = aligned(data, 8);
      return new Float64Array(buffer, at, data.byteLength >> 3);
    }
  }
}
