// <hour-chart>: the last hour of one number, minute by minute, as bars or as a line, drawn by hand. The place it takes
// is always the same, so that new numbers move nothing around it.

import { fill, h, svg } from '../lib/dom.js';
import { MINUTES } from '../lib/history.js';

/** The drawing is stretched to the place that it has; only these proportions count. */
const WIDTH = 600;
const HEIGHT = 100;
const STEP = WIDTH / MINUTES;

/**
 * @typedef {object} Drawing
 * @property {'bars' | 'line'} kind
 * @property {string} label What the number is.
 * @property {number[]} values One per minute, the last one is now; at most an hour.
 * @property {(value: number) => string} format With its unit.
 */

export class HourChart extends HTMLElement {
  /** @type {Drawing | null} */
  #drawing = null;
  #shape = svg('g');
  #mark = svg('line', { class: 'chart-mark', y1: 0, y2: HEIGHT, visibility: 'hidden' });
  #plot = svg('svg', { class: 'chart-plot', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' }, this.#shape, this.#mark);
  #label = h('h3');
  #said = h('span', { class: 'chart-said number' });
  #top = h('span', { class: 'chart-top soft number' });

  connectedCallback() {
    fill(this,
      h('div', { class: 'chart-head' }, this.#label, this.#said),
      h('div', { class: 'chart-body' }, this.#top, this.#plot),
      h('div', { class: 'chart-foot soft', 'aria-hidden': 'true' }, h('span', {}, `−${MINUTES} min`), h('span', {}, 'now')));
    this.#plot.addEventListener('pointermove', (event) => this.#point(event));
    this.#plot.addEventListener('pointerdown', (event) => this.#point(event));
    this.#plot.addEventListener('pointerleave', () => this.#say(null));
  }

  /** @param {Drawing} drawing */
  draw(drawing) {
    this.#drawing = drawing;
    const { kind, label, values, format } = drawing;
    const most = Math.max(0, ...values);
    const top = roundUp(most);
    this.#label.textContent = label;
    this.#top.textContent = format(top);
    this.#plot.setAttribute('aria-label', `${label} in the last hour: ${format(values.at(-1) ?? 0)} now, ${format(most)} at most.`);
    fill(this.#shape, kind === 'bars' ? bars(values, top) : line(values, top));
    if (!this.#plot.matches(':hover')) this.#say(null);
  }

  /** @param {PointerEvent} event */
  #point(event) {
    if (!this.#drawing) return;
    const { left, width } = this.#plot.getBoundingClientRect();
    const slot = Math.min(MINUTES - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * MINUTES)));
    const index = slot - (MINUTES - this.#drawing.values.length);
    this.#say(index >= 0 ? index : null);
  }

  /**
   * Says one value, or else the last one.
   * @param {number | null} index
   */
  #say(index) {
    if (!this.#drawing) return;
    const { values, format } = this.#drawing;
    const ago = index === null ? 0 : values.length - 1 - index;
    const words = format(values.at(-1 - ago) ?? 0);
    this.#said.textContent = ago === 0 ? words : `${ago} min ago: ${words}`;
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
    // However little it is, it shall be seen.
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
  // The line goes on to the edge, so that a server that has just begun has one too.
  const last = values.at(-1) ?? 0;
  points.push(`${WIDTH} ${HEIGHT - (last / top) * HEIGHT}`);
  const path = `M${points.join('L')}`;
  return [
    svg('path', { class: 'chart-area', d: `${path}V${HEIGHT}H${x(0)}Z` }),
    svg('path', { class: 'chart-line', d: path }),
  ];
}

/**
 * The next number of the form 1, 2 or 5 with noughts: a scale that does not change with every value.
 * @param {number} value
 */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  const factor = [1, 2, 5, 10].find((step) => step * power >= value) ?? 10;
  return factor * power;
}

customElements.define('hour-chart', HourChart);
