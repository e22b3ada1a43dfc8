function (doc) {
  // Rows of records, each with the document's id at the end of its key. One with 'kind' has what a plan learns from: the
  // record without what only people read. The others are one for every condition that a list may have, with all that
  // the other conditions ask of the record. Behind the first part is a tenant, whose own rows they are, or null.
  if (doc._id.slice(0, 4) !== 'job-' || !doc.job) { return; }
  var i, tenants = doc.tenant ? [null, doc.tenant] : [null];
  var without = function (all, names) {
    var out = {}, name;
    for (name in all) { if (names.indexOf(name) < 0) { out[name] = all[name]; } }
    return out;
  };
  var each = function (list, change) {
    var out = [], k;
    for (k = 0; k < (list || []).length; k++) { out.push(change(list[k])); }
    return out;
  };
  var data = doc.job.data || {}, training = doc.job.training || {}, model = doc.job.model || {};

  var past = without(doc, ['_rev', 'transitions', 'origin', 'outages', 'warnings', 'decisions', 'planning', 'actions',
    'stages']);
  past.actions = each(doc.actions, function (a) {
    // Heartbeats of what passed are a curve for people; those of what failed tell how far it came.
    return without(a, a.outcome === 'success' ? ['logs', 'evidence', 'beats'] : ['logs', 'evidence']);
  });
  if (doc.stages) {
    past.stages = each(doc.stages, function (s) { return without(s, ['reasons', 'decision']); });
  }

  var output = (doc.job.output || {}).model, models = [];
  if (model.name) { models.push(model.name); }
  if (output && output !== model.name) { models.push(output); }
  if (model.python) { models.push(model.python.file, model.python.file + ':' + model.python.entry); }
  var listed = {
    status: doc.status || '', dataset: (doc.data || {}).name || '', models: models, tenant: doc.tenant || ''
  };

  each(tenants, function (tenant) {
    emit(['kind', tenant, data.source || '', training.batchSize || 0, training.backend || '', model.name || '',
      model.custom || '', (model.layers || []).length, doc._id], past);
    if (tenant) { emit(['any', tenant, '', doc._id], listed); }
    emit(['status', tenant, listed.status, doc._id], listed);
    emit(['dataset', tenant, listed.dataset, doc._id], listed);
    for (i = 0; i < models.length; i++) { emit(['model', tenant, models[i], doc._id], listed); }
  });
}
