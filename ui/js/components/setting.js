// A setting: its label and description, and next to them a group of radio buttons or a checkbox.

import { h } from '../lib/dom.js';

/**
 * @template T
 * @typedef {object} Choice
 * @property {T} value
 * @property {string} label
 */

/**
 * @typedef {{ element: HTMLElement, update(): void }} Setting `update` shows the current value.
 */

/**
 * Creates a group of radio buttons.
 * @template {string} T
 * @param {{ name: string, label: string, description?: string, choices: Choice<T>[], get(): T, set(value: T): void }} setting
 * @returns {Setting}
 */
export function choice({ name, label, description, choices, get, set }) {
  const buttons = choices.map(({ value, label: text }) => {
    const input = h('input', { type: 'radio', name, value, onchange: () => set(value) });
    return { value, input, element: h('label', { class: 'setting-choice' }, input, text) };
  });
  const words = h('span', { class: 'setting-label', id: `label-${name}` }, label);
  const note = describe(name, description);
  const element = h('div', { class: 'setting', role: 'radiogroup', 'data-setting': name, 'aria-labelledby': words.id, 'aria-describedby': note?.id },
    h('div', {}, words, note), h('div', { class: 'setting-choices' }, buttons.map((button) => button.element)));
  return { element, update: () => buttons.forEach(({ value, input }) => (input.checked = value === get())) };
}

/**
 * Creates a checkbox.
 * @param {{ name: string, label: string, description?: string, get(): boolean, set(isOn: boolean): void }} setting
 * @returns {Setting}
 */
export function toggle({ name, label, description, get, set }) {
  const note = describe(name, description);
  const input = h('input', { type: 'checkbox', name, id: `input-${name}`, 'aria-describedby': note?.id, onchange: () => set(input.checked) });
  const element = h('div', { class: 'setting', 'data-setting': name },
    h('div', {}, h('label', { class: 'setting-label', for: input.id }, label), note), h('label', { class: 'setting-switch' }, input));
  return { element, update: () => (input.checked = get()) };
}

/**
 * @param {string} name
 * @param {string} [text]
 */
function describe(name, text) {
  return text ? h('p', { class: 'setting-note soft', id: `setting-${name}` }, text) : null;
}
