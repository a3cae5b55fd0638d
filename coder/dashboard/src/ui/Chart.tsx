// A time series chart, drawn by uPlot in the theme's colours; a table with the same numbers follows
// for screen readers.
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Series {
  name: string;
  values: readonly (number | null)[];
}

const DAY_S = 86_400;
const DAYS = [1, 2, 7, 14, 28, 84].map((days) => days * DAY_S);
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10_000, 100_000];

/**
 * The stroke and fill of a series. A bar of height 0 is not drawn: its outline would be a dash on
 * the axis for each such day.
 */
export function drawn(values: Series["values"], bars: boolean): (number | null)[] {
  return values.map((value) => (bars && value === 0 ? null : value));
}

interface ChartProps {
  label: string;
  /** Times in milliseconds. */
  times: readonly number[];
  series: readonly Series[];
  height?: number;
  unit?: string;
  bars?: boolean;
  /** Text shown if all values are 0: an empty grid looks like a chart that has not loaded. */
  nothing?: string;
}

export function Chart({
  label,
  times,
  series,
  height = 220,
  unit = "",
  bars = false,
  nothing = "No data for this period.",
}: ChartProps) {
  const isEmpty = series.every((item) => item.values.every((value) => !value));
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--muted"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
      font: "12px Inter Variable, sans-serif",
    };
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height,
        legend: { show: series.length > 1, live: false },
        cursor: { y: false },
        axes: [
          {
            ...axis,
            size: 28,
            incrs: DAYS,
            values: (_, splits) =>
              splits.map((at) =>
                new Date(at * 1000).toLocaleDateString(undefined, {
                  month: "short",
                  day: "numeric",
                }),
              ),
          },
          {
            ...axis,
            size: 52,
            incrs: WHOLE,
            values: (_, values) => values.map((value) => `${value}${unit}`),
          },
        ],
        // A day's bar is as wide as the day: the first and the last bar are not cut in half.
        scales: {
          x: bars ? { range: (_, min, max) => [min - DAY_S / 2, max + DAY_S / 2] } : {},
          y: { range: (_, min, max) => [Math.min(0, min ?? 0), Math.max(1, (max ?? 1) * 1.1)] },
        },
        series: [
          {},
          ...series.map(
            (item, index) =>
              ({
                label: item.name,
                stroke: colour(`--chart-${(index % 5) + 1}`),
                width: 2,
                fill:
                  bars || series.length === 1
                    ? `color-mix(in srgb, ${colour(`--chart-${(index % 5) + 1}`)} 18%, transparent)`
                    : undefined,
                ...(bars && uPlot.paths.bars
                  ? { paths: uPlot.paths.bars({ size: [0.6, 60] }) }
                  : {}),
                points: { show: times.length < 40 },
              }) as uPlot.Series,
          ),
        ],
      },
      [
        times.map((time) => time / 1000),
        ...series.map((item) => drawn(item.values, bars)),
      ] as uPlot.AlignedData,
      element,
    );
    const watch = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [times, series, height, unit, bars, isEmpty]);
  if (isEmpty) return <p className="min-h-56 text-muted">{nothing}</p>;
  return (
    <figure aria-label={label} className="relative">
      <div
        ref={box}
        aria-hidden="true"
        className="text-sm [&_.u-legend]:text-muted [&_.u-legend_th]:font-medium! [&_.uplot]:[font-family:inherit]!"
        style={{ minHeight: height }}
      />
      {/* A table grows with its rows whatever its class says; its container does not. */}
      <div className="sr-only">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th scope="col">Day</th>
              {series.map((item) => (
                <th key={item.name} scope="col">
                  {item.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {times.map((time, index) => (
              <tr key={time}>
                <th scope="row">{new Date(time).toLocaleDateString()}</th>
                {series.map((item) => (
                  <td key={item.name}>
                    {item.values[index] ?? ""}
                    {unit}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}
