#!/usr/bin/env python3
"""One question's table: table.py QUESTION OUTPUT ERRORS JSON.

OUTPUT holds Google Benchmark's JSON, or lines of JSON {"contender", "metric", "value", "unit"}, or both (see run.sh). Prints contender,
value and ratio to ours for each case and metric, and writes the same to JSON.
"""
import json
import re
import sys

_FIELDS = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "repetition_index", "threads",
           "iterations", "real_time", "cpu_time", "time_unit", "label", "aggregate_name", "aggregate_unit", "items_per_second",
           "bytes_per_second", "error_occurred", "error_message", "big_o", "rms"}
_DECORATION = re.compile(r"^(real_time|process_time|manual_time|(iterations|min_time|min_warmup_time|repeats|threads):.*)$")


def documents(text):
    """Every JSON object in `text`, whatever stands between them."""
    decoder, position = json.JSONDecoder(), 0
    while (position := text.find("{", position)) >= 0:
        try:
            document, position = decoder.raw_decode(text, position)
            yield document
        except json.JSONDecodeError:
            position += 1


def rows_of_benchmark(question, result):
    """The rows of one of Google Benchmark's results."""
    if result.get("run_type") == "aggregate" and result.get("aggregate_name") != "median":
        return
    parts = [part for part in result.get("run_name", result["name"]).split("/") if not _DECORATION.match(part)]
    if len(parts) == 1:
        parts.insert(0, question)
    row = {"question": question, "case": "/".join([parts[0], *parts[2:]]), "contender": result.get("label") or parts[1]}
    if result.get("error_occurred"):
        yield row | {"metric": "error", "value": None, "unit": result.get("error_message", "")}
        return
    if "items_per_second" in result:
        yield row | {"metric": "throughput", "value": result["items_per_second"], "unit": "items/s"}
    elif "bytes_per_second" in result:
        yield row | {"metric": "throughput", "value": result["bytes_per_second"], "unit": "B/s"}
    else:
        yield row | {"metric": "time", "value": result["real_time"], "unit": result["time_unit"]}
    for name, value in result.items():
        if name not in _FIELDS and isinstance(value, (int, float)):
            yield row | {"metric": name, "value": value, "unit": ""}


def collect(question, text):
    rows = []
    for document in documents(text):
        if "benchmarks" in document:
            by_run = {}
            for result in document["benchmarks"]:
                by_run.setdefault(result.get("run_name", result["name"]), []).append(result)
            for results in by_run.values():
                aggregates = [result for result in results if result.get("run_type") == "aggregate"]
                for result in aggregates or results:
                    rows += rows_of_benchmark(question, result)
        elif "contender" in document:
            rows.append({"question": question, "case": question, "metric": "value", "unit": ""} | document)
    ours = {}
    for row in rows:
        if row["contender"].startswith("strobe") and row["value"] is not None:
            ours.setdefault((row["case"], row["metric"]), row["value"])
    for row in rows:
        own = ours.get((row["case"], row["metric"]))
        row["ratio_to_ours"] = row["value"] / own if own and row["value"] is not None else None
    return rows


def readable(value):
    if value is None:
        return "-"
    for limit, divisor, suffix in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= limit:
            return f"{value / divisor:.2f}{suffix}"
    return f"{value:.4g}"


def print_table(question, rows):
    print(f"\n== {question}")
    table = [("case", "contender", "metric", "value", "x ours")]
    for row in sorted(rows, key=lambda row: (row["case"], row["metric"])):
        ratio = row["ratio_to_ours"]
        table.append((row["case"], row["contender"], row["metric"], f"{readable(row['value'])} {row['unit']}".strip(),
                      f"{ratio:.3g}" if ratio is not None else "-"))
    widths = [max(len(line[column]) for line in table) for column in range(5)]
    for line in table:
        print("  ".join(text.ljust(width) if column < 3 else text.rjust(width) for column, (text, width) in enumerate(zip(line, widths))))


def main():
    question, output, errors, target = sys.argv[1:5]
    with open(output, encoding="utf-8") as file:
        rows = collect(question, file.read())
    with open(errors, encoding="utf-8", errors="replace") as file:
        skipped = [line.strip() for line in file if line.startswith("skipped:")]
    print_table(question, rows)
    for line in skipped:
        print(line)
    with open(target, "w", encoding="utf-8") as file:
        json.dump({"question": question, "rows": rows, "skipped": skipped}, file, indent=1)
    sys.exit(0 if rows and all(row["value"] is not None for row in rows) else 1)


if __name__ == "__main__":
    main()
