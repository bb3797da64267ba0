// The colours of frames: fills on which the theme's text has a contrast of at least 4.5.

/** Hues of modules; the program's own comes first. */
const MODULE_HUES = [62, 235, 155, 305, 195, 345, 110, 268, 25, 130];
const MORE_HUE = 25;
const LESS_HUE = 250;
const NEUTRAL_HUE = 60;
const SHADES = 3; // of a module's functions
const CHANGE_STEPS = 4; // of more, and as many of less
const CHANGE_LIMITS = [0.1, 0.25, 0.5]; // of what changed, between the steps
const HEAT_STEPS = 6;

/** Lightness and chroma; for those with steps, those of the first and what each step adds. */
const LIGHT = {
  text: '#1c1917',
  dimText: '#57534e',
  ring: '#000000',
  stripe: 'rgb(0 0 0 / .07)',
  code: {first: [0.8, 0.1], step: [0.03, 0]},
  inlined: {first: [0.875, 0.05], step: [0.03, 0]},
  change: {first: [0.9, 0.045], step: [-0.055, 0.04]},
  heat: {first: [0.93, 0.045], step: [-0.088, 0.025]},
  plain: [0.88, 0.004],
  rest: [0.9, 0.004],
  dim: [0.935, 0.003],
  match: [0.8, 0.15],
};
/** @type {typeof LIGHT} */
const DARK = {
  text: '#f6f4f1',
  dimText: '#a8a29e',
  ring: '#ffffff',
  stripe: 'rgb(255 255 255 / .09)',
  code: {first: [0.43, 0.092], step: [0.025, 0]},
  inlined: {first: [0.36, 0.05], step: [0.02, 0]},
  change: {first: [0.38, 0.06], step: [0.03, 0.035]},
  heat: {first: [0.34, 0.05], step: [0.095, 0.022]},
  plain: [0.36, 0.004],
  rest: [0.32, 0.004],
  dim: [0.27, 0.003],
  match: [0.48, 0.17],
};

/** The fills of a theme, by number. */
class Palette {
  /** @param {boolean} isDark */
  constructor(isDark) {
    const theme = isDark ? DARK : LIGHT;
    this.text = theme.text;
    this.dimText = theme.dimText;
    this.ring = theme.ring;
    this.stripe = theme.stripe;
    /** @type {string[]} */
    this.fills = [];
    const add = (/** @type {number[]} */ [lightness, chroma], hue) =>
      this.fills.push(`oklch(${lightness} ${chroma} ${hue})`) - 1;
    const steps = (count, {first, step}, hue) =>
      Array.from({length: count}, (_, i) =>
        add([first[0] + i * step[0], first[1] + i * step[1]], hue),
      );
    this.code = MODULE_HUES.map((hue) => steps(SHADES, theme.code, hue));
    this.inlined = MODULE_HUES.map((hue) => steps(SHADES, theme.inlined, hue));
    this.more = steps(CHANGE_STEPS, theme.change, MORE_HUE);
    this.less = steps(CHANGE_STEPS, theme.change, LESS_HUE);
    this.heat = steps(HEAT_STEPS, theme.heat, NEUTRAL_HUE);
    // Pseudo-frames, and changes that are not significant.
    this.plain = add(theme.plain, NEUTRAL_HUE);
    this.rest = add(theme.rest, NEUTRAL_HUE); // frames too narrow to be drawn
    this.dim = add(theme.dim, NEUTRAL_HUE); // what a search does not match
    this.match = add(theme.match, 330);
  }

  /** The hue's place; module 0 is none. @param {number} module */
  static hueOf(module) {
    return Math.max(0, module - 1) % MODULE_HUES.length;
  }

  /** The fill that stands for a module. @param {number} module */
  ofModule(module) {
    return this.code[Palette.hueOf(module)][1];
  }

  /**
   * A hue for each module, a shade for each function.
   * @param {CodeFunction} code @param {boolean} isInlined
   */
  ofCode(code, isInlined) {
    if (code.isPseudo) return this.plain;
    const shades = (isInlined ? this.inlined : this.code)[Palette.hueOf(code.module)];
    return shades[hashOf(code.name) % SHADES];
  }

  /**
   * By how large a change is against the larger share.
   * @param {number} now @param {number} base @param {boolean} isSignificant
   */
  ofChange(now, base, isSignificant) {
    if (!isSignificant) return this.plain;
    const part = Math.abs(now - base) / Math.max(now, base);
    const step = CHANGE_LIMITS.filter((limit) => part >= limit).length;
    return (now > base ? this.more : this.less)[step];
  }
}

/** @param {string} text */
function hashOf(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}
