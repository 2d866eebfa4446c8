// The last hour of a number, as `/debug/vars` tells it, made ready to be drawn.

/** How many minutes are drawn, the running one among them. */
export const MINUTES = 60;
/** An hour is remembered as one sample more than it has minutes. */
const SAMPLES = 61;

/**
 * How much a counter grew in each minute; the last one is the running minute.
 * @param {string} hist
 * @param {number} total What the counter is now.
 * @returns {number[]}
 */
export function growth(hist, total) {
  const samples = [...numbers(hist), total];
  // A server that is younger than that began with nothing.
  if (samples.length <= SAMPLES) samples.unshift(0);
  return samples.slice(1).map((value, index) => Math.max(0, value - samples[index])).slice(-MINUTES);
}

/**
 * How high a level was at each minute; the last one is now.
 * @param {string} hist
 * @param {number} now
 * @returns {number[]}
 */
export function level(hist, now) {
  return [...numbers(hist), now].slice(-MINUTES);
}

/** @param {string} hist */
function numbers(hist) {
  return hist.split(',').filter(Boolean).map(Number).filter(Number.isFinite);
}
