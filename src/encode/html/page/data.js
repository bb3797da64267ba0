// The profile of the page, read from the data that html_data.h describes.

const DATA_VERSION = 3;

/** Lets the browser draw and react in the middle of a long task. */
class Pace {
  constructor() {
    this.begin = performance.now();
  }

  /** Call between two parts of the task; waits if the browser has waited long enough. */
  async rest() {
    if (performance.now() - this.begin < Pace.SLICE_MS) return;
    await new Promise((resolve) => {
      const channel = new MessageChannel();
      channel.port1.onmessage = resolve;
      channel.port2.postMessage(null);
    });
    this.begin = performance.now();
  }
}
Pace.SLICE_MS = 12;

/** Reads columns and texts in the order in which they were written. */
class ColumnReader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.position = 0;
  }

  varint() {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.bytes[this.position++];
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  }

  /** Small numbers as Uint32Array, others as Float64Array, which is exact up to 2^53. */
  column() {
    const count = this.varint();
    const width = this.varint();
    const divisor = this.varint();
    const result = width <= 4 && divisor === 1 ? new Uint32Array(count) : new Float64Array(count);
    for (let plane = 0; plane < width; plane++) {
      const begin = this.position + plane * count;
      const factor = divisor * 2 ** (8 * plane);
      for (let i = 0; i < count; i++) result[i] += this.bytes[begin + i] * factor;
    }
    this.position += width * count;
    return result;
  }

  /** Numbers that may be less than 0: their sizes, and which of them are. */
  values() {
    const sizes = this.column();
    const negative = this.column();
    if (negative.length === 0) return sizes;
    const result = Float64Array.from(sizes);
    for (const place of negative) result[place] = -result[place];
    return result;
  }

  texts() {
    const count = this.varint();
    const size = this.varint();
    const text = new TextDecoder().decode(this.bytes.subarray(this.position, this.position + size));
    this.position += size;
    return count === 0 ? [] : text.split('\0').map(visible);
  }

  /** The sums of a column: from differences to numbers. */
  sums() {
    const column = Float64Array.from(this.column());
    for (let i = 1; i < column.length; i++) column[i] += column[i - 1];
    return column;
  }
}

/**
 * @typedef {object} CodeFunction
 * @property {string} name
 * @property {string} short
 * @property {string} file where it is defined
 * @property {number} line
 * @property {number} module
 * @property {boolean} isPseudo
 */

/**
 * @typedef {{path: string, name: string, buildId: string}} CodeModule
 * @typedef {Uint32Array|Float64Array} Column
 * @typedef {{node: Column, labels: Column, values: Column[]}} Rows
 * @typedef {{key: string, value: string}} LabelText
 */

/**
 * A thread's registration; a time is in ns since the period's begin.
 * @typedef {object} ThreadLife
 * @property {string} id
 * @property {string} name
 * @property {number} beginNs -1 if before the period, or unknown
 * @property {number} endNs -1 if after the period, or unknown
 * @property {number} cpuNs in the period, -1 if unknown
 * @property {number} captures
 */

/** One of the profiles of a page. */
class Side {
  /**
   * @param {ColumnReader} reader @param {string[]} texts @param {number} typeCount
   * @param {LabelText[][]} labelSets
   */
  constructor(reader, texts, typeCount, labelSets) {
    const [
      program,
      process,
      sequence,
      begin,
      duration,
      period,
      periodType,
      periodUnit,
      ...comments
    ] = reader.column();
    this.program = texts[program];
    this.processId = process;
    this.sequence = sequence;
    this.beginMs = begin;
    this.durationNs = duration;
    this.period = period;
    this.periodType = texts[periodType];
    this.periodUnit = texts[periodUnit];
    this.comments = comments.map((comment) => texts[comment]);
    const ids = reader.column();
    const names = reader.column();
    const captures = reader.column();
    this.threads = Array.from(ids, (id, i) => ({
      id: texts[id],
      name: texts[names[i]],
      captures: captures[i],
    }));
    this.lifeCount = reader.column()[0];
    this.lives = Side.lives(reader, texts);
    const threadOf = new Map(this.threads.map(({id}, i) => [id, i]));
    /** The thread of each label set, or -1. */
    this.threadOfSet = Int32Array.from(
      labelSets,
      (set) => threadOf.get(set.find(({key}) => key === 'thread id')?.value ?? '') ?? -1,
    );
    /** @type {Rows} */
    this.rows = {
      node: reader.sums(),
      labels: reader.column(),
      values: Array.from({length: typeCount}, () => reader.values()),
    };
    /**
     * Of each value type, what each function has; without a function if the rows say it.
     * @type {{self: Column, total: Column}[]}
     */
    this.functionAmounts = Array.from({length: typeCount}, () => ({
      self: reader.values(),
      total: reader.values(),
    }));
  }

  /**
   * Those with the most CPU time.
   * @param {ColumnReader} reader @param {string[]} texts
   * @returns {ThreadLife[]}
   */
  static lives(reader, texts) {
    const ids = reader.column();
    const [names, begins, ends, cpu, captures] = Array.from({length: 5}, () => reader.column());
    return Array.from(ids, (id, i) => ({
      id: texts[id],
      name: texts[names[i]],
      beginNs: begins[i] - 1,
      endNs: ends[i] - 1,
      cpuNs: cpu[i] - 1,
      captures: captures[i],
    }));
  }
}

/** All that a page shows. */
class PageProfile {
  /** @param {ColumnReader} reader @param {Pace} pace */
  static async read(reader, pace) {
    const profile = new PageProfile();
    const texts = reader.texts();
    await pace.rest();
    const [version, sideCount, defaultType, momentStride] = reader.column();
    if (version !== DATA_VERSION) throw new Error(`the page's data have version ${version}`);
    profile.defaultType = defaultType;
    profile.momentStride = momentStride;
    const types = reader.column();
    const units = reader.column();
    profile.types = Array.from(types, (type, i) => ({type: texts[type], unit: texts[units[i]]}));
    profile.readCode(reader, texts);
    await pace.rest();
    profile.levelsUp = reader.column();
    profile.siteOfNode = reader.column();
    profile.readLabelSets(reader, texts);
    await pace.rest();
    for (let i = 0; i < sideCount; i++) {
      profile.sides.push(new Side(reader, texts, types.length, profile.labelSets));
      await pace.rest();
    }
    profile.moments = {
      row: reader.column(),
      time: reader.sums(),
      values: Array.from(types, () => reader.values()),
    };
    return profile;
  }

  constructor() {
    this.defaultType = 0;
    this.momentStride = 1;
    /** @type {{type: string, unit: string}[]} */
    this.types = [];
    /** @type {CodeModule[]} */
    this.modules = [];
    /** @type {CodeFunction[]} */
    this.functions = [];
    /** @type {{function: Column, line: Column, isInlined: Column}} */
    this.sites = {
      function: new Uint32Array(),
      line: new Uint32Array(),
      isInlined: new Uint32Array(),
    };
    /** @type {Column} */
    this.levelsUp = new Uint32Array();
    /** @type {Column} */
    this.siteOfNode = new Uint32Array();
    /** @type {LabelText[][]} */
    this.labelSets = [];
    /** @type {Side[]} */
    this.sides = [];
    /** @type {{row: Column, time: Column, values: Column[]}} */
    this.moments = {row: new Uint32Array(), time: new Uint32Array(), values: []};
  }

  /** @param {ColumnReader} reader @param {string[]} texts */
  readCode(reader, texts) {
    const path = reader.column();
    const buildId = reader.column();
    this.modules = Array.from(path, (text, i) => ({
      path: texts[text],
      name: baseName(texts[text]),
      buildId: texts[buildId[i]],
    }));
    const [name, short, file, line, module, isPseudo] = [
      reader.column(),
      reader.column(),
      reader.column(),
      reader.column(),
      reader.column(),
      reader.column(),
    ];
    this.functions = Array.from(name, (text, i) => ({
      name: texts[text],
      short: texts[short[i]],
      file: texts[file[i]],
      line: line[i],
      module: module[i],
      isPseudo: isPseudo[i] === 1,
    }));
    this.sites = {function: reader.column(), line: reader.column(), isInlined: reader.column()};
  }

  /** @param {ColumnReader} reader @param {string[]} texts */
  readLabelSets(reader, texts) {
    const [counts, keys, values] = [reader.column(), reader.column(), reader.column()];
    let next = 0;
    for (const count of counts) {
      const set = [];
      for (const end = next + count; next < end; next++)
        set.push({key: texts[keys[next]], value: texts[values[next]]});
      this.labelSets.push(set);
    }
  }
}

/** @param {string} base64 of gzip @returns {Promise<Uint8Array>} */
async function unpacked(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
