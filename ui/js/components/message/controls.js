// Controls of the panels. Their state is saved for the next message.

/** @import { IconName } from '../../lib/icons.js' */

import * as prefs from '../../lib/prefs.js';
import { h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';

/**
 * Creates a button with an icon.
 * @param {IconName} name
 * @param {string} label
 * @param {() => void} run
 */
export function iconButton(name, label, run) {
  return h('button', { class: 'button small', type: 'button', title: label, 'aria-label': label, onclick: run }, icon(name));
}

/**
 * Creates a toggle button. `apply` is called at once and after every change.
 * @param {IconName} name
 * @param {string} label
 * @param {{ pref: string, fallback: boolean, apply: (pressed: boolean) => void }} settings
 */
export function toggle(name, label, { pref, fallback, apply }) {
  let pressed = prefs.read(pref, fallback);
  const draw = () => {
    button.setAttribute('aria-pressed', String(pressed));
    apply(pressed);
  };
  const button = iconButton(name, label, () => {
    pressed = !pressed;
    prefs.write(pref, pressed);
    draw();
  });
  draw();
  return button;
}

/**
 * Creates a group of buttons of which one is pressed. `apply` is called at once and after every change.
 * @template {string} T
 * @param {string} label The name of the group.
 * @param {{ value: T, label: string, icon: IconName }[]} options The first one is the default.
 * @param {{ pref: string, apply: (value: T) => void }} settings
 */
export function choice(label, options, { pref, apply }) {
  const buttons = options.map((option) => iconButton(option.icon, option.label, () => {
    prefs.write(pref, option.value);
    choose(option.value);
  }));
  const choose = (/** @type {T} */ value) => {
    options.forEach((option, at) => buttons[at].setAttribute('aria-pressed', String(option.value === value)));
    apply(value);
  };
  const remembered = prefs.read(pref, /** @type {string} */ (options[0].value));
  choose((options.find((option) => option.value === remembered) ?? options[0]).value);
  return h('div', { class: 'choice', role: 'group', 'aria-label': label }, buttons);
}

/**
 * The content of a panel. It can have the focus, so that keys scroll the message.
 * @param {string} label
 * @param {string} kind A class.
 */
export function scroller(label, kind) {
  return h('div', { class: `panel-body ${kind}`, role: 'group', 'aria-label': label, tabindex: 0 });
}
