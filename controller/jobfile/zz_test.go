package jobfile
import ("testing";"strings";"time";"runtime")
func TestZZ(t *testing.T) {
  for _, u := range []string{"a: {},\n", strings.Repeat("a: {},",680)+"\n", strings.Repeat("a: {},",2700)+"\n", strings.Repeat("[],",5000)+"\n"} {
	s := "{"+strings.Repeat(u, (maxFile-200)/len(u))+"}"
	t0:=time.Now(); var m0 runtime.MemStats
	docs, err := loadYAML([]byte(s))
	runtime.ReadMemStats(&m0)
	t.Log(time.Since(t0), len(docs), err, m0.TotalAlloc>>20, m0.HeapSys>>20)
	runtime.GC();runtime.ReadMemStats(&m0); t.Log(m0.HeapAlloc>>20)
	runtime.KeepAlive(docs)
}
}
