// <hour-chart>: the values of the last hour, one per minute, as an SVG chart of bars or a line. Its size is fixed, so new values
// do not move the page.

import { fill, h, svg } from '../lib/dom.js';
import { MINUTES } from '../lib/last-hour.js';

/** The units of the drawing. It is scaled to the size of the element. */
const WIDTH = 600;
const HEIGHT = 100;
const STEP = WIDTH / MINUTES;

/**
 * @typedef {object} Drawing
 * @property {'bars' | 'line'} kind
 * @property {string} label The name of the values.
 * @property {number[]} values One per minute, at most an hour; the last one is the current value.
 * @property {(value: number) => string} format Adds the unit.
 */

export class HourChart extends HTMLElement {
  /** @type {Drawing | null} */
  #drawing = null;
  #shape = svg('g');
  #mark = svg('line', { class: 'chart-mark', y1: 0, y2: HEIGHT, visibility: 'hidden' });
  #plot = svg('svg', { class: 'chart-plot', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' }, this.#shape, this.#mark);
  #label = h('h3');
  #value = h('span', { class: 'chart-value number' });
  #top = h('span', { class: 'chart-top soft number' });

  connectedCallback() {
    fill(this,
      h('div', { class: 'chart-head' }, this.#label, this.#value),
      h('div', { class: 'chart-body' }, this.#top, this.#plot),
      h('div', { class: 'chart-foot soft', 'aria-hidden': 'true' }, h('span', {}, `−${MINUTES} min`), h('span', {}, 'now')));
    this.#plot.addEventListener('pointermove', (event) => this.#pointed(event));
    this.#plot.addEventListener('pointerdown', (event) => this.#pointed(event));
    this.#plot.addEventListener('pointerleave', () => this.#showValue(null));
  }

  /** @param {Drawing} drawing */
  draw(drawing) {
    this.#drawing = drawing;
    const { kind, label, values, format } = drawing;
    const max = Math.max(0, ...values);
    const top = roundUp(max);
    this.#label.textContent = label;
    this.#top.textContent = format(top);
    this.#plot.setAttribute('aria-label', `${label} in the last hour: ${format(values.at(-1) ?? 0)} now, maximum ${format(max)}.`);
    fill(this.#shape, kind === 'bars' ? bars(values, top) : line(values, top));
    if (!this.#plot.matches(':hover')) this.#showValue(null);
  }

  /** @param {PointerEvent} event */
  #pointed(event) {
    if (!this.#drawing) return;
    const { left, width } = this.#plot.getBoundingClientRect();
    const slot = Math.min(MINUTES - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * MINUTES)));
    const index = slot - (MINUTES - this.#drawing.values.length);
    this.#showValue(index >= 0 ? index : null);
  }

  /**
   * Shows one value, or the last one.
   * @param {number | null} index
   */
  #showValue(index) {
    if (!this.#drawing) return;
    const { values, format } = this.#drawing;
    const ago = index === null ? 0 : values.length - 1 - index;
    const text = format(values.at(-1 - ago) ?? 0);
    this.#value.textContent = ago === 0 ? text : `${ago} min ago: ${text}`;
    const x = WIDTH - (ago + 0.5) * STEP;
    this.#mark.setAttribute('x1', String(x));
    this.#mark.setAttribute('x2', String(x));
    this.#mark.setAttribute('visibility', index === null ? 'hidden' : 'visible');
  }
}

/**
 * @param {number[]} values
 * @param {number} top
 */
function bars(values, top) {
  return values.map((value, index) => {
    // A small value stays visible.
    const height = value > 0 ? Math.max(2, (value / top) * HEIGHT) : 0;
    const x = WIDTH - (values.length - index) * STEP;
    return svg('rect', { class: index === values.length - 1 ? 'chart-bar now' : 'chart-bar', x: x + 0.15 * STEP, y: HEIGHT - height, width: 0.7 * STEP, height });
  });
}

/**
 * @param {number[]} values
 * @param {number} top
 */
function line(values, top) {
  const x = (/** @type {number} */ index) => WIDTH - (values.length - index - 0.5) * STEP;
  const points = values.map((value, index) => `${x(index)} ${HEIGHT - (value / top) * HEIGHT}`);
  // The line continues to the edge, so that a single value is visible too.
  const last = values.at(-1) ?? 0;
  points.push(`${WIDTH} ${HEIGHT - (last / top) * HEIGHT}`);
  const path = `M${points.join('L')}`;
  return [
    svg('path', { class: 'chart-area', d: `${path}V${HEIGHT}H${x(0)}Z` }),
    svg('path', { class: 'chart-line', d: path }),
  ];
}

/**
 * Returns the next number of the form 1, 2 or 5 times a power of ten, so that the scale rarely changes.
 * @param {number} value
 */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  const factor = [1, 2, 5, 10].find((step) => step * power >= value) ?? 10;
  return factor * power;
}

customElements.define('hour-chart', HourChart);
