// <chaos-settings>: the failures that the server simulates: senders, recipients and logins are refused at random.

/** @import { Chaos, ChaosTrigger } from '../types.js' */

import * as api from '../lib/api.js';
import { fill, find, h } from '../lib/dom.js';
import { toast } from '../lib/feedback.js';
import { icon } from '../lib/icons.js';

/** What can fail: the name in the API, the label, and the words for it in a sentence. @type {[keyof Chaos, string, string][]} */
const KINDS = [['sender', 'Senders (MAIL FROM)', 'senders'], ['recipient', 'Recipients (RCPT TO)', 'recipients'], ['authentication', 'Logins (AUTH)', 'logins']];

export class ChaosSettings extends HTMLElement {
  #request = new AbortController();
  #state = h('div', { class: 'page-state', role: 'status' });
  #rows = KINDS.map(([kind, label]) => ({ kind, label, code: number(`${kind}-code`, `Reply code for ${label}`, 400, 599), probability: number(`${kind}-probability`, `Probability for ${label}`, 0, 100) }));
  #off = h('button', { class: 'button', type: 'button', onclick: () => this.#turnOff() }, 'Turn off');

  async connectedCallback() {
    const { signal } = this.#request = new AbortController();
    fill(this, h('p', { class: 'soft' }, 'Loading…'));
    try {
      if (!(await api.about()).chaos) return fill(this, h('p', { class: 'soft' }, 'Simulated failures are not enabled. Start the server with ', h('code', {}, '--chaos-enabled'), ' to set them here.'));
      const chaos = await api.chaos(signal);
      fill(this, this.#state, h('form', { onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        this.#save(this.#entered());
      } },
      h('div', { class: 'chaos-fields' }, ['Refused', 'Reply code', 'Probability, %'].map((heading) => h('span', { class: 'soft', 'aria-hidden': 'true' }, heading)),
        this.#rows.flatMap(({ label, code, probability }) => [h('span', { class: 'chaos-label' }, label), code, probability])),
      h('div', { class: 'row' }, h('button', { class: 'button main', type: 'submit' }, 'Apply'), this.#off)));
      this.#show(chaos);
    } catch (error) {
      if (!signal.aborted) fill(this, h('p', { class: 'note bad', role: 'alert' }, icon('warning'), api.sentence(error)));
    }
  }

  disconnectedCallback() {
    this.#request.abort();
  }

  /** @returns {Chaos} */
  #entered() {
    const entered = this.#rows.map(({ kind, code, probability }) => [kind, { code: Number(code.value), probability: Number(probability.value) }]);
    return Object.fromEntries(entered);
  }

  #turnOff() {
    for (const { probability } of this.#rows) probability.value = '0';
    this.#save(this.#entered());
    find(this, '[type=submit]', HTMLElement).focus();
  }

  /** @param {Chaos} chaos */
  async #save(chaos) {
    try {
      this.#show(await api.setChaos(chaos));
      toast('The simulated failures were changed.');
    } catch (error) {
      toast(api.sentence(error), { bad: true });
    }
  }

  /** @param {Chaos} chaos */
  #show(chaos) {
    for (const { kind, code, probability } of this.#rows) {
      code.value = String(chaos[kind].code);
      probability.value = String(chaos[kind].probability);
    }
    const active = KINDS.filter(([kind]) => chaos[kind].probability > 0).map(([kind, , words]) => sentence(words, chaos[kind]));
    this.#off.hidden = active.length === 0;
    fill(this.#state, active.length > 0 && h('p', { class: 'note warn' }, icon('warning'), h('span', {}, h('strong', {}, 'Failures are simulated. '), active.join(' '))));
  }
}

/**
 * @param {string} words
 * @param {ChaosTrigger} trigger
 */
const sentence = (words, { code, probability }) => `${probability} % of ${words} are refused with ${code}.`;

/**
 * @param {string} name
 * @param {string} label
 * @param {number} min
 * @param {number} max
 */
function number(name, label, min, max) {
  return h('input', { class: 'field', type: 'number', name, 'aria-label': label, min, max, step: 1, required: true, inputmode: 'numeric' });
}

customElements.define('chaos-settings', ChaosSettings);
