// The values of the last hour from `/debug/vars`, prepared for a chart.

/** The number of minutes in a chart, including the current one. */
export const MINUTES = 60;
/** The server keeps one sample more than an hour has minutes. */
const SAMPLES = 61;

/**
 * Returns the growth of a counter in each minute; the last value is the current minute.
 * @param {string} hist
 * @param {number} total The current value of the counter.
 * @returns {number[]}
 */
export function growth(hist, total) {
  const samples = [...numbers(hist), total];
  // With fewer samples the server is younger than an hour and the counter started at zero.
  if (samples.length <= SAMPLES) samples.unshift(0);
  return samples.slice(1).map((value, index) => Math.max(0, value - samples[index])).slice(-MINUTES);
}

/**
 * Returns the value at each minute; the last one is the current value.
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
