// The icons: SVG paths in a square of 24 units, stroked in the color of the text.

import { svg } from './dom.js';

const PATHS = {
  attachment: 'M20 11.500 12.300 19.200a5 5 0 0 1-7-7l8-8a3.300 3.300 0 0 1 4.700 4.700l-8 8a1.700 1.700 0 0 1-2.400-2.400l7-7',
  back: 'M15 5l-7 7 7 7',
  bookmark: 'M6.500 4h11v16.500l-5.500-4-5.500 4z',
  calendar: 'M4 6h16v14H4zM4 10.500h16M8 3.500v4M16 3.500v4',
  check: 'M5 12.500 10 17.500 19.500 7',
  checks: 'M2.500 12.500 7 17 16 7M11.500 16.500 12 17 21.500 7',
  close: 'M6 6l12 12M18 6 6 18',
  code: 'M8.500 7 3.500 12l5 5M15.500 7l5 5-5 5M13.500 5l-3 14',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  dark: 'M20 14.500A8.500 8.500 0 1 1 9.500 4a7 7 0 0 0 10.500 10.500z',
  down: 'M6 9.500l6 6 6-6',
  download: 'M12 4v11m-5-5 5 5 5-5M5 20h14',
  envelope: 'M3.500 6h17v12.500h-17zM4 7l8 6.500L20 7',
  forward: 'M9 5l7 7-7 7',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  fit: 'M3.500 5v14M20.500 5v14M7 12h10M9.500 9.500 7 12l2.500 2.500M14.500 9.500 17 12l-2.500 2.500',
  filter: 'M4 5h16l-6 7.500V19l-4 1.500v-8z',
  light: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2.500v2M12 19.500v2M2.500 12h2M19.500 12h2M5.300 5.300l1.400 1.400M17.300 17.300l1.400 1.400M5.300 18.700l1.400-1.400M17.300 6.700l1.400-1.400',
  mailboxes: 'M4 6h16M4 12h16M4 18h10',
  open: 'M14 4h6v6M20 4l-9 9M18 14v6H4V6h6',
  mailbox: 'M3.500 5.500h6l2 2.500h9v11h-17z',
  more: 'M5 12v.010M12 12v.010M19 12v.010',
  next: 'M5 9l7 7 7-7',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 4.500v15l12-7.500z',
  plus: 'M12 5v14M5 12h14',
  previous: 'M5 15l7-7 7 7',
  screen: 'M4 5h16v11H4zM9 20h6M12 16v4',
  search: 'M10.500 4a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13zM15.500 15.500 20 20',
  send: 'M3.500 11 20.500 3.500 14 20.500 11 13.500zM11 13.500 20.500 3.500',
  shield: 'M12 3l7.500 3v5.500c0 4.500-3 8-7.500 9.500-4.500-1.500-7.500-5-7.500-9.500V6z',
  system: 'M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18',
  tag: 'M4 4h8l8.500 8.500-8 8L4 12zM8 8v.3',
  tablet: 'M6 3h12v18H6zM11 18h2',
  phone: 'M7.500 3h9v18h-9zM11 18.500h2',
  text: 'M5 6.500V5h14v1.500M12 5v14M9 19h6',
  trash: 'M4.500 6.500h15M9 6.500V4h6v2.500M6.500 6.500 7.500 20h9l1-13.500M10 10v6.500M14 10v6.500',
  unread: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z',
  warning: 'M12 4 21.500 20h-19zM12 10v4.500M12 17.200v.3',
  wrap: 'M4 5.500h16M4 12h12.500a3.250 3.250 0 0 1 0 6.500H11M13.500 16 11 18.500l2.500 2.500M4 18.500h3',
};

/** @typedef {keyof typeof PATHS} IconName */

/**
 * Creates an icon. It is hidden from screen readers; the control around it needs a label.
 * @param {IconName} name
 */
export function icon(name) {
  return svg('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, svg('path', { d: PATHS[name] }));
}
