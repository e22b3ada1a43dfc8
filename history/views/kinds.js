function (doc) {
  // What a plan learns from: a record by what jobs are alike in, without what only people read.
  if (doc._id.slice(0, 4) !== 'job-' || !doc.job) { return; }
  var without = function (all, names) {
    var out = {}, name;
    for (name in all) { if (names.indexOf(name) < 0) { out[name] = all[name]; } }
    return out;
  };
  var each = function (list, change) {
    var out = [], i;
    for (i = 0; i < (list || []).length; i++) { out.push(change(list[i])); }
    return out;
  };
  var past = without(doc, ['_rev', 'transitions', 'origin', 'outages', 'warnings', 'decisions', 'planning', 'actions',
    'stages']);
  past.actions = each(doc.actions, function (a) {
    // Heartbeats of what passed are a curve for people; those of what failed tell how far it came.
    return without(a, a.outcome === 'success' ? ['logs', 'evidence', 'beats'] : ['logs', 'evidence']);
  });
  if (doc.stages) {
    past.stages = each(doc.stages, function (s) { return without(s, ['reasons', 'decision']); });
  }
  var data = doc.job.data || {}, training = doc.job.training || {}, model = doc.job.model || {};
  var kind = [data.source || '', training.batchSize || 0, training.backend || '', model.name || '', model.custom || '',
    (model.layers || []).length, doc._id];
  emit([null].concat(kind), past);
  if (doc.tenant) { emit([doc.tenant].concat(kind), past); }
}
