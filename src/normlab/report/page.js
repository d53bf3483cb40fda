// Makes the charts answer: values on hover, keys that hide series, saving. Without it everything is there, but still.
(() => {
  'use strict';
  const svg_space = 'http://www.w3.org/2000/svg';
  const make = (parent, tag, attributes) => {
    const made = document.createElementNS(svg_space, tag);
    for (const name in attributes) made.setAttribute(name, attributes[name]);
    parent.append(made);
    return made;
  };
  const numbers = text => text.split(' ').map(Number);
  const shown = element => element.getClientRects().length > 0;

  // ---- the tip: one box that follows the pointer
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.setAttribute('role', 'status');  // read aloud when the arrow keys move it
  document.body.append(tip);
  const show_tip = (content, x, y) => {
    tip.replaceChildren(content);
    const box = tip.getBoundingClientRect(), gap = 16;
    const left = x + gap + box.width > innerWidth ? x - gap - box.width : x + gap;
    const top = Math.min(y + gap, innerHeight - box.height - 8);
    tip.style.transform = `translate(${Math.max(4, left)}px,${Math.max(4, top)}px)`;
    tip.style.visibility = 'visible';
  };
  const hide_tip = () => { tip.style.visibility = 'hidden'; };

  // Four digits as elsewhere in the report; x as it was recorded.
  const value_text = value => (Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-4)
    ? value.toExponential(3) : Number(value.toPrecision(4)).toFixed(Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value) || 1)))))
    .replace('-', '\u2212');
  const x_text = value => Number(value.toPrecision(6)).toLocaleString('en-US', { maximumFractionDigits: 4 });

  // ---- curves
  // The value at x: exact on a recorded point, linear in between, nothing outside or beside a gap.
  const value_at = (xs, ys, x) => {
    let low = 0, high = xs.length - 1;
    if (high < 0 || x < xs[0] || x > xs[high]) return null;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle; else high = middle;
    }
    if (x === xs[low]) return ys[low];
    if (x === xs[high]) return ys[high];
    if (ys[low] === null || ys[high] === null) return null;
    return ys[low] + (ys[high] - ys[low]) * (x - xs[low]) / (xs[high] - xs[low]);
  };
  const nearest = (lists, x) => {
    let best = null;
    for (const list of lists) {
      for (const value of list) if (value !== null && (best === null || Math.abs(value - x) < Math.abs(best - x))) best = value;
    }
    return best;
  };

  const hover_curves = (figure, data, plot) => {
    const [left, top, width, height] = numbers(plot.dataset.frame);
    const [x0, x1, y0, y1] = numbers(plot.dataset.domain);
    const axis = Number(plot.closest('.view').dataset.x), log = plot.dataset.log === '1';
    const curves = data.plots[plot.dataset.plot].filter(curve => shown_series(plot, curve.series));
    const columns = curves.map(curve => data.columns[curve.x[axis]]);
    const to_x = x => left + width * (x - x0) / (x1 - x0);
    const share = y => log ? Math.log(y / y0) / Math.log(y1 / y0) : (y - y0) / (y1 - y0);
    return {
      columns, axis, range: [x0, x1],
      from_pixel: px => nearest(columns, x0 + (x1 - x0) * Math.min(1, Math.max(0, (px - left) / width))),
      place: x => [to_x(x), top],
      draw(x) {
        const layer = clear_cursor(plot);
        make(layer, 'path', { class: 'cursor', d: `M${to_x(x)} ${top}v${height}` });
        const rows = curves.map((curve, i) => ({
          curve, y: value_at(columns[i], curve.y, x),
          low: curve.low && value_at(columns[i], curve.low, x), high: curve.high && value_at(columns[i], curve.high, x),
        })).filter(row => row.y !== null).sort((a, b) => b.y - a.y);
        const table = document.createElement('table');
        table.createCaption().textContent = `${data.titles[axis]}: ${x_text(x)}`;
        for (const { curve, y, low, high } of rows) {
          const source = plot.querySelector(`.series[data-series="${curve.series}"] .line`);
          const group = make(layer, 'g', { class: 'tone', color: source.parentNode.getAttribute('color'), style: source.parentNode.getAttribute('style') });
          make(group, 'circle', { class: 'cursor-dot', cx: to_x(x), cy: top + height * (1 - share(y)), r: 4 });
          const row = table.insertRow(), name = document.createElement('th');
          name.scope = 'row';
          name.append(swatch(source), data.labels[curve.series]);
          row.append(name);
          row.insertCell().textContent = value_text(y);
          if (low != null && high != null) row.insertCell().textContent = `${value_text(low)} to ${value_text(high)}`;
        }
        return table;
      },
    };
  };
  const swatch = source => {
    const svg = document.createElementNS(svg_space, 'svg');
    svg.setAttribute('class', 'chart');
    svg.setAttribute('viewBox', '0 0 22 10');
    const group = svg.appendChild(source.parentNode.cloneNode(false));
    make(group, 'path', { class: 'line', d: 'M0 5h22', 'stroke-dasharray': source.getAttribute('stroke-dasharray') || 'none' });
    return svg;
  };
  const shown_series = (plot, number) => !plot.querySelector(`.series.off[data-series="${number}"]`);
  const clear_cursor = plot => {
    plot.closest('figure').querySelectorAll('.cursor-layer').forEach(layer => layer.remove());
    return make(plot, 'g', { class: 'cursor-layer' });
  };
  const leave = figure => {
    figure.querySelectorAll('.cursor-layer').forEach(layer => layer.remove());
    hide_tip();
  };

  // ---- heat maps
  // Dense maps are images: a level from 1 to 255 of the range, or transparent where a cell is masked.
  const canvases = new WeakMap();
  const level_value = (data, group, column, row) => {
    const image = group.querySelector('.levels'), [low, high] = data.range;
    if (!canvases.has(image)) {
      const canvas = document.createElement('canvas');
      canvas.width = (data.columns || data.rows).length;
      canvas.height = data.rows.length;
      canvases.set(image, canvas.getContext('2d', { willReadFrequently: true }));
      canvases.get(image).drawImage(image, 0, 0, canvas.width, canvas.height);
    }
    const [level, , , opaque] = canvases.get(image).getImageData(column, row, 1, 1).data;
    const step = (high - low) / 254, text = (low + (level - 1) * step).toFixed(Math.max(0, Math.ceil(-Math.log10(step))));
    return opaque ? (data.over && level === 255 ? '\u2265 ' : '') + text.replace('-', '\u2212') : null;
  };
  const hover_heat = (data, group, x, y) => {
    const [left, top, width, height] = numbers(group.dataset.frame);
    const columns = data.columns || data.rows;
    const column = Math.floor((x - left) / width * columns.length), row = Math.floor((y - top) / height * data.rows.length);
    const inside = column >= 0 && column < columns.length && row >= 0 && row < data.rows.length;
    const value = !inside ? null : data.heat ? data.heat[row][column] : level_value(data, group, column, row);
    if (value == null) return null;
    const across = width / columns.length, down = height / data.rows.length;
    make(clear_cursor(group), 'rect', { class: 'cursor-cell', x: left + column * across, y: top + row * down, width: across, height: down });
    return document.createTextNode(`${data.rows[row]} \u2192 ${columns[column]}: ${value}`);
  };

  // ---- pointer and keys over a chart
  const wire_hover = (figure, svg, data) => {
    let current = null;  // the x under the cursor, for the arrow keys
    const point = event => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const plot_at = at => [...svg.querySelectorAll('.plot')].filter(shown).find(plot => {
      const [left, top, width, height] = numbers(plot.dataset.frame);
      return at.x >= left - 6 && at.x <= left + width + 6 && at.y >= top && at.y <= top + height;
    });
    const move = event => {
      const mark = event.target.closest('[data-tip]');
      if (mark) return show_tip(document.createTextNode(mark.dataset.tip), event.clientX, event.clientY);
      if (!data) return hide_tip();
      const at = point(event), heat = svg.querySelector('.heat');
      if (heat) {
        const content = hover_heat(data, heat, at.x, at.y);
        return content ? show_tip(content, event.clientX, event.clientY) : leave(figure);
      }
      const plot = plot_at(at), hover = plot && hover_curves(figure, data, plot);
      const x = hover ? hover.from_pixel(at.x) : null;
      if (x === null) return leave(figure);
      current = { plot, x };
      show_tip(hover.draw(x), event.clientX, event.clientY);
    };
    svg.addEventListener('pointermove', move);
    svg.addEventListener('pointerdown', move);
    svg.addEventListener('pointerleave', () => leave(figure));
    if (!data || data.rows) return;
    svg.setAttribute('tabindex', '0');
    svg.addEventListener('blur', () => leave(figure));
    svg.addEventListener('keydown', event => {
      if (event.target !== svg) return;
      if (event.key === 'Escape') return leave(figure);
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      if (!current || !shown(current.plot)) current = { plot: [...svg.querySelectorAll('.plot')].find(shown), x: null };
      const hover = hover_curves(figure, data, current.plot);
      const all = [...new Set(hover.columns.flat())].filter(x => x !== null && x >= hover.range[0] && x <= hover.range[1]).sort((a, b) => a - b);
      if (all.length === 0) return;
      const at = current.x === null ? (step > 0 ? -1 : all.length) : all.indexOf(nearest([all], current.x));
      current.x = all[Math.min(all.length - 1, Math.max(0, at + step))];
      const content = hover.draw(current.x), [x, y] = hover.place(current.x);
      const corner = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
      show_tip(content, corner.x, corner.y);
    });
  };

  // ---- keys: click hides or shows, double click isolates; Enter and Shift+Enter do the same
  const wire_keys = figure => {
    const all = () => [...new Set([...figure.querySelectorAll('.key')].map(key => key.dataset.series))];
    const is_off = number => figure.querySelector(`.key[data-series="${number}"]`).classList.contains('off');
    const set = (number, off) => figure.querySelectorAll(`[data-series="${number}"]`).forEach(element => {
      element.classList.toggle('off', off);
      if (element.classList.contains('key')) element.setAttribute('aria-pressed', String(!off));
    });
    const isolate = number => {
      const alone = all().every(other => is_off(other) === (other !== number));
      all().forEach(other => set(other, !alone && other !== number));
    };
    figure.querySelectorAll('.key').forEach(key => {
      const number = key.dataset.series;
      key.setAttribute('role', 'button');
      key.setAttribute('tabindex', '0');
      key.setAttribute('aria-pressed', 'true');
      key.addEventListener('click', () => set(number, !is_off(number)));
      key.addEventListener('dblclick', () => isolate(number));
      key.addEventListener('keydown', event => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        event.shiftKey ? isolate(number) : set(number, !is_off(number));
      });
    });
  };

  // ---- saving: what is shown, with its style, as a file that stands alone
  const save = figure => {
    const svg = [...figure.querySelectorAll('svg.chart')].find(shown);
    const copy = svg.cloneNode(true), before = [...svg.querySelectorAll('*')];
    [...copy.querySelectorAll('*')].forEach((element, i) => {
      if (getComputedStyle(before[i]).display === 'none' && !element.closest('defs')) element.remove();
    });
    copy.querySelectorAll('.cursor-layer').forEach(layer => layer.remove());
    copy.querySelectorAll('.view').forEach(view => view.classList.add('first'));
    const margin = 16, width = svg.viewBox.baseVal.width + 2 * margin, height = svg.viewBox.baseVal.height + 2 * margin;
    const frame = { width, height, viewBox: `${-margin} ${-margin} ${width} ${height}` };
    for (const name in frame) copy.setAttribute(name, frame[name]);
    const paper = make(copy, 'rect', { class: 'paper', x: -margin, y: -margin, width, height }), style = make(copy, 'style', {});
    style.textContent = document.getElementById('chart-style').textContent;
    copy.prepend(style, paper);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: 'image/svg+xml' }));
    link.download = figure.id + '.svg';
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const wire = figure => {
    const script = figure.querySelector('script[type="application/json"]');
    const data = script && JSON.parse(script.textContent);
    // Our tip is quicker than the browser's, and works by touch.
    figure.querySelectorAll('svg.chart :not(defs) > title').forEach(title => {
      title.parentNode.dataset.tip = title.textContent;
      title.remove();
    });
    figure.querySelectorAll('svg.chart').forEach(svg => wire_hover(figure, svg, data));
    wire_keys(figure);
    const button = figure.querySelector('.save');
    button.hidden = false;
    button.addEventListener('click', () => save(figure));
  };
  document.querySelectorAll('figure').forEach(wire);
  document.addEventListener('newfigure', event => wire(event.target));  // of live.js
})();
