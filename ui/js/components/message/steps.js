// Lists of which the mail decides how long they are: shown a part at a time.

/**
 * Draws the first things of a list, and at the end something that draws the next ones in its place.
 * @template T
 * @param {T[]} items
 * @param {(item: T) => Element} draw
 * @param {(rest: number, show: () => void) => Element} more
 * @param {{ first: number, step?: number }} lengths
 * @returns {Element[]}
 */
export function inSteps(items, draw, more, { first, step = first }) {
  const drawn = items.slice(0, first).map(draw);
  const rest = items.slice(first);
  if (rest.length === 0) return drawn;
  const door = more(rest.length, () => {
    const list = door.parentElement;
    door.replaceWith(...inSteps(rest, draw, more, { first: step }));
    // The button that had the focus is gone; what it has shown is where reading goes on.
    list?.setAttribute('tabindex', '-1');
    list?.focus({ preventScroll: true });
  });
  return [...drawn, door];
}
