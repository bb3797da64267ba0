// Names of functions and files, in short.

/** @param {string} path */
function baseName(path) {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

/** What stays whole though it has brackets or spaces in it. */
const WHOLE_NAME = new RegExp(
  [
    String.raw`\(anonymous namespace\)`,
    String.raw`\boperator\s*(?:\(\)|\[\]|<=>|<<=|>>=|->\*|->|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--)`,
    String.raw`\boperator\s*[-+*/%^&|!=~<>,]=?`,
    String.raw`\boperator (?:new|delete)(?:\[\])?`,
    String.raw`\boperator [\w: ]+[*&]*`,
  ].join('|'),
  'y',
);
const QUALIFIERS = /^(?:const|volatile|noexcept|&)/;

/**
 * A C++ function's name without its parameters, its template arguments and its result:
 * "std::vector::push_back". Other names stay as they are.
 * @param {string} name
 */
function shortName(name) {
  if (name.startsWith('[') || !/[<(]/.test(name)) return name;
  let result = '';
  let depth = 0;
  let begin = 0; // of the last word outside of brackets
  for (let i = 0; i < name.length; i++) {
    WHOLE_NAME.lastIndex = i;
    const whole = depth === 0 ? (WHOLE_NAME.exec(name)?.[0] ?? '') : '';
    if (whole) {
      result += whole.trimEnd();
      i += whole.length - 1;
      if (name.startsWith(' <', i + 1)) i++; // "operator< <int>"
      continue;
    }
    if (depth === 0 && name.startsWith(' [', i)) return result.slice(begin) + name.slice(i);
    const isReceiver = depth === 0 && name.startsWith('.(*', i - 1); // Go's "main.(*T).Run"
    const isOpen = name[i] === '<' || (name[i] === '(' && !isReceiver);
    const isClosed = depth > 0 && (name[i] === ')' || (name[i] === '>' && name[i - 1] !== '-'));
    if (isOpen) depth++;
    else if (isClosed) depth--;
    else if (depth === 0) {
      if (name[i] === ' ' && !QUALIFIERS.test(name.slice(i + 1))) begin = result.length + 1;
      result += name[i];
    }
  }
  const short = result.slice(begin).replace(/(?: (?:const|volatile|noexcept|&&?))+$/, '');
  return depth === 0 && short !== '' && !short.startsWith('::') ? short : name;
}
