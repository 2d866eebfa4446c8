// The note about remote content of the HTML of a message: what is not loaded, and buttons to load it once or always.

import { h, set } from '../../lib/dom.js';
import { count } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import * as settings from '../../lib/settings.js';

const FIRST_HOSTS = 3;

/**
 * Returns the note, or null if the message has no remote content. `load` is called when the user wants it to be loaded or not.
 * @param {string[]} hosts
 * @param {(isLoaded: boolean) => void} load
 */
export function remoteNote(hosts, load) {
  if (hosts.length === 0) return null;
  let isLoaded = isAlwaysLoaded();
  const text = h('span', { class: 'remote-text', role: 'status', title: hosts.map(visible).join('\n') });
  const once = h('button', { class: 'button small', type: 'button', onclick: () => show(true) }, 'Load once');
  const always = h('button', { class: 'button small', type: 'button', onclick: () => {
    settings.set('remoteContent', isAlwaysLoaded() ? 'ask' : 'always');
    show(isAlwaysLoaded());
  } });
  const draw = () => {
    const first = hosts.slice(0, FIRST_HOSTS).map(visible).join(', ');
    const named = hosts.length > FIRST_HOSTS ? `${first} and ${count(hosts.length - FIRST_HOSTS)} more` : first;
    const state = !isLoaded ? 'not loaded' : isAlwaysLoaded() ? 'always loaded' : 'loaded for this view';
    text.textContent = `Remote content from ${named} is ${state}.`;
    // Not `disabled`, because the button has the focus.
    set(once, { 'aria-disabled': isLoaded && 'true' });
    once.hidden = isAlwaysLoaded();
    always.textContent = isAlwaysLoaded() ? 'Ask again' : 'Always load';
  };
  const show = (/** @type {boolean} */ wanted) => {
    const isChanged = wanted !== isLoaded;
    isLoaded = wanted;
    if (isChanged) load(isLoaded);
    draw();
  };
  draw();
  return h('div', { class: 'note remote-note' }, icon('shield'), text, h('span', { class: 'remote-actions' }, once, always));
}

/** Returns whether remote content is always loaded. */
export const isAlwaysLoaded = () => settings.get('remoteContent') === 'always';
