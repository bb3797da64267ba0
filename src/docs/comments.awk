# Marks the comments of a header for Doxygen: the first one is the file's, each other one is that of
# the declaration below. What looks like markup is text, and indented lines are examples.
function write_comment(mark, i) {
  for (i = 0; i < count; ++i) print mark " " comment[i]
  if (is_example) print mark " </pre>"
  count = is_example = is_item = 0
}

/^[ \t]*\/\/( |$)/ {
  text = $0
  sub(/^[ \t]*\/\/ ?/, "", text)
  gsub(/[\\@<>&#%"]/, "\\\\&", text)
  gsub(/::/, "\\::", text)
  if (NR == 1) print "/// @file"
  if (sub(/^\* /, "- ", text)) is_item = 1
  else if (text !~ /^  /) is_item = 0
  is_code = text ~ /^  / && !is_item
  if (is_code && !is_example) text = "<pre>" text
  if (!is_code && is_example) text = "</pre>" text
  is_example = is_code
  comment[count++] = text
  next
}

# An explicit instantiation or specialisation of a function has no page of its own.
/^extern template / || (/^template <>/ && getline && /\);$/) {
  write_comment("//")
  while ($0 !~ /;$/ && getline) continue
  next
}

{
  write_comment("///")
  print
}
