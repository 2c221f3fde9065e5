// tidy: table
/** Drawings as SVG text: icons in boxes of 16, marks of states in boxes of 14 with an outline of their own each. */
export const ICONS = {
  overview: '<path d="M2.5 11a5.5 5.5 0 1 1 11 0"/><path d="M8 11l2.6-3.4"/><path d="M2.5 13.5h11"/>',
  jobs: '<path d="M5.5 4h8M5.5 8h8M5.5 12h8"/><path d="M2.5 4h.01M2.5 8h.01M2.5 12h.01" stroke-width="2"/>',
  timeouts:
    '<path d="M2.5 6.5h11M5 2v2.5M11 2v2.5"/><path d="M13.5 7.5V4.8a1.3 1.3 0 0 0-1.3-1.3H3.8a1.3 1.3 0 0 0-1.3 1.3v7.4a1.3 1.3 0 0 0 1.3 1.3h3"/><circle cx="11.3" cy="11.3" r="3.2"/><path d="M11.3 9.8v1.6l1 .8"/>',
  queues: '<path d="M2.5 5.2L8 2.5l5.5 2.7L8 8z"/><path d="M2.5 8.2L8 11l5.5-2.8M2.5 11L8 13.7l5.5-2.7"/>',
  workers:
    '<rect x="4" y="4" width="8" height="8" rx="1.2"/><path d="M6.5 1.8v2.2M9.5 1.8v2.2M6.5 12v2.2M9.5 12v2.2M1.8 6.5h2.2M1.8 9.5h2.2M12 6.5h2.2M12 9.5h2.2"/>',
  crons:
    '<path d="M13.3 6.5A5.5 5.5 0 1 0 13.5 9"/><path d="M13.7 3.2v3.3h-3.3"/><path d="M8 5.2V8l1.8 1.2"/>',
  workflows:
    '<rect x="1.8" y="5.8" width="4.4" height="4.4" rx="1"/><rect x="9.8" y="2" width="4.4" height="4.4" rx="1"/><rect x="9.8" y="9.6" width="4.4" height="4.4" rx="1"/><path d="M6.2 8h1.5c1 0 .7-3.8 2.1-3.8M6.2 8h1.5c1 0 .7 3.8 2.1 3.8"/>',
  sagas:
    '<path d="M3.5 2v12"/><path d="M3.5 5h4a2 2 0 0 1 2 2v0a2 2 0 0 0 2 2h1"/><circle cx="3.5" cy="5" r="1.3"/><circle cx="12.5" cy="9" r="1.3"/>',
  dead: '<path d="M2 9.5l1.8-5.8h8.4L14 9.5v3H2z"/><path d="M2 9.5h3.5l.8 1.2h3.4l.8-1.2H14"/><path d="M6.8 5.5l2.4 2.4M9.2 5.5L6.8 7.9"/>',
  events: '<path d="M1.8 8.5h2.7l1.8-5 3 9.5 1.9-4.5h3"/>',
  audit: '<path d="M4 1.8h8v12.4l-2-1.2-2 1.2-2-1.2-2 1.2z"/><path d="M6.2 5h3.6M6.2 8h3.6"/>',
  advice:
    '<path d="M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6"/><circle cx="10" cy="4.5" r="1.8"/><circle cx="6" cy="11.5" r="1.8"/>',
  limits:
    '<path d="M2 13.5V6M6 13.5V3.5M10 13.5V8M14 13.5V5"/><path d="M1.5 2h13" stroke-dasharray="1.5 2"/>',
  unique: '<circle cx="5" cy="11" r="2.8"/><path d="M7 9l6-6M11 5l2 2"/>',
  webhooks:
    '<circle cx="4" cy="11.5" r="2.2"/><circle cx="12" cy="11.5" r="2.2"/><circle cx="8" cy="4.2" r="2.2"/><path d="M9 6.200l2.200 3.500M6.200 11.500h3.600M6.900 6.100L4.800 9.500"/>',
  schemas:
    '<path d="M6 2.500H5A1.500 1.500 0 0 0 3.500 4v2.500L2 8l1.500 1.500V12A1.500 1.500 0 0 0 5 13.500h1M10 2.500h1A1.500 1.500 0 0 1 12.500 4v2.500L14 8l-1.500 1.500V12a1.500 1.500 0 0 1-1.500 1.500h-1"/><path d="M6.500 8h3"/>',
  calendars:
    '<rect x="2.500" y="3.500" width="11" height="10" rx="1.300"/><path d="M2.500 6.500h11M5 2v2.500M11 2v2.500M5.500 10l1.700 1.700L10.500 8.800"/>',
  tenants:
    '<path d="M2.500 13.500V5l4-2v10.500M6.500 6.500h7v7M1.500 13.500h13"/><path d="M4.500 6.500h.01M4.500 9.500h.01M10 9h.01M10 11.500h.01" stroke-width="1.600"/>',
  system:
    '<rect x="2" y="2.5" width="12" height="4.5" rx="1"/><rect x="2" y="9" width="12" height="4.5" rx="1"/><path d="M4.5 4.8h.01M4.5 11.3h.01" stroke-width="2"/>',
  search: '<circle cx="7" cy="7" r="4.3"/><path d="M10.3 10.3L13.7 13.7"/>',
  copy: '<rect x="5.5" y="5.5" width="8" height="8" rx="1.3"/><path d="M10.5 3.5v-.2a1 1 0 0 0-1-1H3.3a1 1 0 0 0-1 1v6.2a1 1 0 0 0 1 1h.2"/>',
  link: '<path d="M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2.2-2.2A2.6 2.6 0 0 0 9 3.3l-.8.8"/><path d="M9.2 6.8a2.6 2.6 0 0 0-3.7 0L3.3 9A2.6 2.6 0 0 0 7 12.7l.8-.8"/>',
  right: '<path d="M6 3.5L10.5 8 6 12.5"/>',
  down: '<path d="M3.5 6L8 10.5 12.5 6"/>',
  plus: '<path d="M8 3v10M3 8h10"/>',
  x: '<path d="M4 4l8 8M12 4l-8 8"/>',
  pause: '<path d="M5.5 3.5v9M10.5 3.5v9" stroke-width="2"/>',
  play: '<path d="M5 3.2l7.5 4.8L5 12.8z"/>',
  filter: '<path d="M2 4h12M4.5 8h7M7 12h2"/>',
  down2: '<path d="M8 2.5v8M4.8 7.5L8 10.7l3.2-3.2M2.5 13.5h11"/>',
  more: '<path d="M3.5 8h.01M8 8h.01M12.5 8h.01" stroke-width="2.4"/>',
  theme: '<circle cx="8" cy="8" r="5.5"/><path d="M8 2.5a5.5 5.5 0 0 1 0 11z" fill="currentColor"/>',
  star: '<path d="M8 2.2l1.8 3.7 4 .6-2.9 2.8.7 4L8 11.4l-3.6 1.9.7-4L2.2 6.5l4-.6z"/>',
  undo: '<path d="M3 6.5h6.5a3.5 3.5 0 0 1 0 7H6"/><path d="M5.8 3.5L2.8 6.5l3 3"/>',
  extend: '<path d="M2.5 3v10M13.5 3v10M5 8h6M9 5.8L11.2 8 9 10.2"/>',
  arrow: '<path d="M3 8h10M9.5 4.5L13 8l-3.5 3.5"/>',
  info: '<circle cx="8" cy="8" r="6"/><path d="M8 7.3v3.7M8 5h.01"/>',
  clock: '<circle cx="8" cy="8" r="6"/><path d="M8 4.7V8l2.3 1.5"/>',
  heart: '<path d="M1.8 8h3l1.5-3.5 2.4 7L10.5 8h3.7"/>',
  menu: '<path d="M2.5 4.500h11M2.500 8h11M2.500 11.500h11"/>',
  out: '<path d="M9.500 2.500H4a1 1 0 0 0-1 1v9a1 1 0 0 0 1 1h5.500"/><path d="M7 8h7M11.500 5.500L14 8l-2.500 2.500"/>',
  check: '<path d="M3 8.500l3.300 3.300L13 4.800"/>',
} as const;

export const MARKS = {
  pending: '<circle cx="7" cy="7" r="5.2" stroke-dasharray="1.6 2.490"/>',
  scheduled: '<circle cx="7" cy="7" r="5.2"/><path d="M7 4v3.2l2 1.2"/>',
  waiting: '<circle cx="7" cy="7" r="5.2"/>',
  running:
    '<circle cx="7" cy="7" r="5.2"/><path d="M7 4.1a2.9 2.9 0 1 1-2.9 2.9H7z" fill="currentColor" stroke="none"/>',
  retry: '<path d="M12 5.2A5.3 5.3 0 1 0 12.3 7.6"/><path d="M12.5 2v3.3H9.2"/>',
  done: '<circle cx="7" cy="7" r="6" fill="currentColor" stroke="none"/><path d="M4.5 7.2l1.8 1.8 3.3-3.7" stroke="var(--surface)"/>',
  late: '<path d="M7 .9l6.1 6.1L7 13.100.9 7z" fill="currentColor" stroke="none"/><path d="M4.9 7.2l1.5 1.5 2.7-3.1" stroke="var(--surface)"/>',
  discarded:
    '<path d="M4.5 1h5L13 4.5v5L9.5 13h-5L1 9.5v-5z" fill="currentColor" stroke="none"/><path d="M5 5l4 4M9 5L5 9" stroke="var(--surface)"/>',
  cancelled: '<circle cx="7" cy="7" r="5.2"/><path d="M3.5 10.5l7-7"/>',
  dead: '<rect x="1.2" y="1.2" width="11.6" height="11.6" rx="2" fill="currentColor" stroke="none"/><path d="M4.8 4.8l4.4 4.4M9.2 4.8L4.8 9.2" stroke="var(--surface)"/>',
  grace:
    '<path d="M7 1.3L13 12H1z" fill="currentColor" stroke-width="1" /><path d="M7 5v3.2M7 10.2h.01" stroke="var(--surface)"/>',
  open: '<circle cx="7" cy="7" r="3.6" fill="currentColor" stroke="none"/>',
  paused: '<circle cx="7" cy="7" r="5.2"/><path d="M5.6 5.2v3.6M8.4 5.2v3.6"/>',
  stuck:
    '<path d="M7 .8l5.4 3.1v6.2L7 13.2 1.6 10.1V3.9z" fill="currentColor" stroke="none"/><path d="M7 4v3.6M7 9.9h.01" stroke="var(--surface)" stroke-width="1.7"/>',
  silent: '<path d="M1 7h3M10 7h3"/><path d="M5.5 4.5l3 5M8.5 4.5l-3 5"/>',
  info: '<circle cx="7" cy="7" r="5.2"/><path d="M7 6.4v3.2M7 4.3h.01"/>',
} as const;

export type IconName = keyof typeof ICONS;
export type MarkName = keyof typeof MARKS;
