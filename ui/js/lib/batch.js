// Much of the same kind, in portions.

/**
 * @template T
 * @param {T[]} items
 * @param {number} most How many a portion holds.
 */
export function* chunks(items, most) {
  for (let first = 0; first < items.length; first += most) yield items.slice(first, first + most);
}
