// The state of the connections to the server. The bar shows a message while one is lost.

/** @typedef {{ up(): void, down(): void }} Tracker The state of one connection. Call `up` when it is no longer used. */

/** @type {Set<Tracker>} */
const down = new Set();

/** Dispatches `change` when `isLost` changes. */
export const changes = new EventTarget();

export const isLost = () => down.size > 0;

/**
 * Creates a tracker. The connection counts as up until `down` is called.
 * @returns {Tracker}
 */
export function track() {
  const update = (/** @type {() => void} */ change) => {
    const before = isLost();
    change();
    if (before !== isLost()) changes.dispatchEvent(new Event('change'));
  };
  /** @type {Tracker} */
  const self = {
    up: () => update(() => down.delete(self)),
    down: () => update(() => down.add(self)),
  };
  return self;
}
