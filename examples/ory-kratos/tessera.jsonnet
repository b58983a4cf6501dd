function(ctx) {
  recipient: ctx.recipient,
  template_type: ctx.template_type,
  template_data: ctx.template_data,
}
