// Splitting an array into chunks.

/**
 * @template T
 * @param {T[]} items
 * @param {number} size The maximum length of a chunk.
 */
export function* chunks(items, size) {
  for (let first = 0; first < items.length; first += size) yield items.slice(first, first + size);
}
