package valgrind

import "slices"

// writeHead writes the line that names the current process, once.
func (r *renderer) writeHead() {
	p := r.t.cur
	if r.headed {
		return
	}
	r.headed = true
	if p.pid == "" && p.tool == "" && p.exe == "" {
		return
	}
	b := append(r.line, "==="...)
	for _, part := range []struct{ before, text string }{{" ", p.tool}, {" process ", p.pid}, {", parent ", p.ppid}} {
		if part.text != "" {
			b = appendClean(append(b, part.before...), []byte(part.text))
		}
	}
	if p.exe != "" {
		b = append(b, ':')
	}
	r.line = b
	r.writeCommandLine()
}

// writeCommandLine ends a line with the command line of the program.
func (r *renderer) writeCommandLine() {
	p := r.t.cur
	b := r.line
	if p.exe != "" {
		b = appendClean(append(b, ' '), []byte(p.exe))
	}
	for _, arg := range p.args {
		b = appendClean(append(b, ' '), []byte(arg))
	}
	r.line = append(b, '\n')
}

// renderOptions renders the command line of Valgrind and the rest of the record. The program's
// command line is in the line of writeHead.
func (r *renderer) renderOptions(rec *Record) {
	in, begun := "", false
	for i := 0; i < len(rec.Items); {
		it := &rec.Items[i]
		switch {
		case it.Depth == 0 && (it.Name == "vargv" || it.Name == "argv"):
			in = it.Name
			if it.Leaf {
				r.renderLines(" ", it.Text)
			}
		case it.Depth == 0:
			in = ""
			i = r.renderItem(rec, i)
			continue
		case in == "argv" && (it.Name == "exe" || it.Name == "arg"):
		case in == "vargv" && (it.Name == "exe" || it.Name == "arg"):
			if !begun {
				r.line = append(r.line, "=== run by:"...)
			}
			r.line = appendClean(append(r.line, ' '), it.Text)
			if begun = i+1 < len(rec.Items) && rec.Items[i+1].Name == "arg" && rec.Items[i+1].Depth > 0; !begun {
				r.line = append(r.line, '\n')
			}
		default:
			i = r.renderItem(rec, i)
			continue
		}
		i++
	}
}

// renderHeading renders the first line of an error. It returns the name of the item whose text is
// in that line, or "" without such an item. The caller must not render that item again.
func (r *renderer) renderHeading(rec *Record) (took string) {
	if rec.Continued {
		return ""
	}
	for i := range rec.Items {
		it := &rec.Items[i]
		if it.Depth > 0 || it.Name != "what" && it.Name != "xwhat" {
			if it.Name == "stack" {
				break
			}
			continue
		}
		took = it.Name
		text := it.Text
		if !it.Leaf {
			text = childText(rec, i, "text")
		}
		r.renderProse(text)
		break
	}
	if took == "" {
		r.line = append(r.line, "Error"...)
	}
	r.renderTags(rec, string(rec.Get("kind")))
	r.line = append(r.line, '\n')
	return took
}

// renderTags renders the kind of an error, its number and its thread:
//
//	[InvalidRead 0x2, thread 1 "worker"]
func (r *renderer) renderTags(rec *Record, kind string) {
	b := append(r.line, " ["...)
	start := len(b)
	b = appendClean(b, []byte(kind))
	if unique := rec.Get("unique"); len(unique) > 0 {
		if len(b) > start {
			b = append(b, ' ')
		}
		b = appendClean(b, unique)
	}
	if tid := rec.Get("tid"); len(tid) > 0 {
		if len(b) > start {
			b = append(b, ", "...)
		}
		b = appendClean(append(b, "thread "...), tid)
		if name := rec.Get("threadname"); len(name) > 0 {
			b = append(b, ` "`...)
			b = append(appendClean(b, name), '"')
		}
	}
	if len(b) == start {
		return
	}
	r.line = append(b, ']')
}

// renderThread renders the record that announces a thread.
func (r *renderer) renderThread(rec *Record) {
	if rec.Continued {
		r.renderItems(rec)
		return
	}
	b := append(r.line, "Thread #"...)
	b = appendClean(b, rec.Get("hthreadid"))
	role := " was created"
	if slices.ContainsFunc(rec.Items, func(it Item) bool { return it.Depth == 0 && it.Name == "isrootthread" }) {
		role = " is the program's root thread"
	}
	r.line = append(append(b, role...), '\n')
	r.renderItems(rec, "hthreadid", "isrootthread")
}

// renderSignal renders the signal that ended a process.
func (r *renderer) renderSignal(rec *Record) {
	if rec.Continued {
		r.renderItems(rec)
		return
	}
	b := append(r.line, "Process terminating with default action of signal "...)
	b = appendClean(b, rec.Get("signo"))
	if name := rec.Get("signame"); len(name) > 0 {
		b = append(appendClean(append(b, " ("...), name), ')')
	}
	if code := rec.Get("sicode"); len(code) > 0 {
		b = appendClean(append(b, ", code "...), code)
	}
	r.line = b
	r.renderTags(rec, "")
	r.line = append(r.line, '\n')
	event, addr := rec.Get("event"), rec.Get("siaddr")
	if event != nil || addr != nil {
		r.line = append(r.line, ' ')
		r.renderProse(event)
		if addr != nil {
			if event != nil {
				r.line = append(r.line, ' ')
			}
			r.line = append(r.line, "at address "...)
			r.renderProse(addr)
		}
		r.line = append(r.line, '\n')
	}
	r.renderItems(rec, "tid", "threadname", "signo", "signame", "sicode", "event", "siaddr")
}
